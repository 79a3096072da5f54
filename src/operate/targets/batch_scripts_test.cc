// Batches outside Kubernetes: what their files say, and how their scripts run, with stand-ins of Slurm's programs, of ssh
// and of systemctl.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/testing/files.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/render/batch_task.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

class BatchScripts : public testing::Test {
 protected:
  BatchScripts() {
    program("systole", "#!/bin/sh\necho \"$*\" >>\"$LOG\"\nexit \"${ENDS:-0}\"\n");
    program("srun", "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
    program("squeue", "#!/bin/sh\necho RUNNING\n");
    program("scontrol", "#!/bin/sh\necho \"scontrol $*\" >>\"$LOG\"\n");
    program("scrontab", "#!/bin/sh\nif [ \"$1\" = -l ]; then cat table; else cat >new && mv new table; fi\n");
    program("ssh", "#!/bin/sh\nfor line; do :; done\ncd home && HOME=$PWD exec sh -c \"$line\"\n");
    program("systemctl", "#!/bin/sh\necho \"systemctl $*\" >>\"$LOG\"\n");
    std::filesystem::create_directories(folder() / "home");
  }
  std::filesystem::path folder() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder() / name).parent_path());
    write_text_file((folder() / name).string(), text).value();
  }
  void program(const char* name, const std::string& text) const {
    write(std::string("bin/") + name, text);
    std::filesystem::permissions(folder() / "bin" / name, std::filesystem::perms(0755));
  }
  Result<Rendered> ask(const char* target, const std::vector<std::string>& sets) const {
    const Workload of =
        read_workload("systole: 1\nname: vectors\ncommand: [systole, batch]\n", "job.yaml", {.sets = sets}).value();
    RenderRequest ask{.target = find_job_target_row(target), .workload = of, .facts = builtin_facts()};
    ask.workload_file = {"", std::string(64, '1')};
    ask.version = "systole";
    ask.place = "files";
    ask.batch = &task_;
    return render(ask);
  }
  Rendered made(const char* target, const std::vector<std::string>& sets) const {
    Rendered rendered = ask(target, sets).value();
    for (const RenderedFile& file : rendered.files) write("files/" + file.path, file.text);
    return rendered;
  }
  Captured shell(const std::string& line, const char* ends = "0") const {
    Command command{.argv = {"/bin/sh", "-c", line}, .cwd = folder().string()};
    command.env = {{"PATH", (folder() / "bin").string() + ":/usr/bin:/bin"},
                   {"LOG", (folder() / "log").string()},
                   {"ENDS", ends},
                   {"SLURM_JOB_ID", "7"}};
    return run_captured(command).value();
  }
  static std::string line(const Rendered& of, const char* what) {
    for (const auto& [name, line] : of.commands)
      if (name == what) return line;
    return "";
  }
  std::string log() const { return text_of(folder() / "log"); }

  BatchTask task_{.file = "kind: embeddings\n", .model = "/m", .input = "/i.csv", .output = "/v/v.jsonl"};
  TemporaryFolder folder_;
};

const CronSchedule& workdays() {
  static const CronSchedule schedule =
      read_schedule(parse_yaml("{ cron: 30 2 * * mon-fri, time_zone: Europe/Berlin }", "job.yaml").value()).value();
  return schedule;
}

TEST_F(BatchScripts, slurm_runs_it_and_begins_it_again_where_it_was_stopped) {
  made("slurm", {"resources={threads: 4, longest: 2h}", "slurm.partition=cpu"});
  EXPECT_EQ(shell("bash files/job.sbatch").exit.code, 0);
  EXPECT_EQ(log(), "batch " + (folder() / "files/job.yaml").string() + "\n");
  EXPECT_EQ(shell("bash files/job.sbatch", "75").exit.code, 75);
  EXPECT_NE(log().find("scontrol requeue 7\n"), std::string::npos);
  EXPECT_EQ(shell("rm log; bash files/job.sbatch", "2").exit.code, 2);
  EXPECT_EQ(log().find("scontrol"), std::string::npos) << "what no retry mends";
  EXPECT_EQ(text_of(folder() / "files/job.yaml"), task_.file);
  EXPECT_EQ(ask("slurm", {"resources.nodes=2"}).error().message, "shards: 2 nodes, and the job is of one process");
}

TEST_F(BatchScripts, slurm_starts_it_by_an_entry_of_scrontab) {
  task_.schedule = workdays();
  const Rendered job = made("slurm", {"resources={threads: 4, longest: 2h}", "slurm.partition=cpu"});
  write("table", "# other\n0 1 * * * other\n");
  for (int times = 0; times < 2; ++times) ASSERT_EQ(shell(line(job, "start")).exit.code, 0);
  const std::string here = std::filesystem::canonical(folder()).string();
  const std::string table = text_of(folder() / "table");
  EXPECT_TRUE(table.starts_with("# other\n0 1 * * * other\n# vectors: systole batch\n#SCRON --job-name=vectors\n"))
      << table;
  EXPECT_TRUE(table.ends_with("#SCRON --chdir=" + here + "\n30 2 * * 1,2,3,4,5 bash " + here +
                              "/files/job.sbatch\n# end of vectors\n"))
      << table;
  EXPECT_NE(table.find("#SCRON --partition=cpu\n"), std::string::npos);
  EXPECT_EQ(table.find("vectors: ", table.find("vectors: ") + 1), std::string::npos)
      << "once, however often it is typed";
  EXPECT_EQ(shell("bash files/job.sbatch").exit.code, 0);
  EXPECT_TRUE(log().ends_with("job.yaml --due\n")) << log();
  program("scancel", "#!/bin/sh\n");
  ASSERT_EQ(shell(line(job, "stop")).exit.code, 0);
  EXPECT_EQ(text_of(folder() / "table"), "# other\n0 1 * * * other\n");
}

TEST_F(BatchScripts, machines_have_a_timer_of_systemd) {
  task_.schedule = workdays();
  task_.is_shared = true;
  const Rendered job = made("ssh", {"ssh.hosts=[a, b]"});
  const Captured started = shell(line(job, "start"));
  ASSERT_EQ(started.exit.code, 0) << started.err;
  EXPECT_EQ(log(),
            "systemctl --user daemon-reload\nsystemctl --user enable --now vectors.timer\n"
            "systemctl --user daemon-reload\nsystemctl --user enable --now vectors.timer\n");
  const std::string units = "home/.config/systemd/user/";
  EXPECT_NE(text_of(folder() / (units + "vectors.timer"))
                .find("\nOnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 2:30:00 Europe/Berlin\n"),
            std::string::npos);
  EXPECT_EQ(text_of(folder() / "home/vectors.systole/job.yaml"), task_.file);
  // What the service runs, as systemd reads it.
  std::string service = text_of(folder() / (units + "vectors.service"));
  const std::size_t begin = service.find("ExecStart=") + 10;
  std::string run = service.substr(begin, service.find('\n', begin) - begin);
  for (std::size_t at = 0; (at = run.find("$$", at)) != run.npos; ++at) run.erase(at, 1);
  ASSERT_EQ(shell("HOME=$PWD/home " + run).exit.code, 0);
  EXPECT_TRUE(log().ends_with(
      "batch " + (std::filesystem::canonical(folder()) / "home/vectors.systole/job.yaml").string() + " --due\n"))
      << log();
  EXPECT_EQ(shell(line(job, "stop")).exit.code, 0);
  EXPECT_TRUE(log().ends_with("systemctl --user disable --now vectors.timer\nsystemctl --user stop vectors.service\n"))
      << log();

  task_.is_shared = false;
  EXPECT_EQ(ask("ssh", {"ssh.hosts=[a, b]"}).error().message, "shards: 2 hosts, and the job is of one process");
  task_.model = "m";
  EXPECT_EQ(ask("ssh", {"ssh.hosts=[a]"}).error().message, "model: 'm' is no path from the root, on the machines");
}

}  // namespace
}  // namespace systole
