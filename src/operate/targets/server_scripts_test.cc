// Servers outside Kubernetes: what their files say, and how their scripts start, drain and begin again, with stand-ins
// of Slurm's programs, of ssh and of systole.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>

#include "ground/base/text_file.h"
#include "ground/net/http_server.h"
#include "ground/process/capture.h"
#include "ground/store/sha256.h"
#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/render/template.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/testing/rendered_examples.h"

namespace systole {
namespace {

// Serves until TERM, which takes it a while; then a second one would be seen too.
constexpr const char* kServer = R"(#!/bin/sh
echo "$*" >>ran
[ -z "$FAILS" ] || exit "$FAILS"
asked=
trap 'asked=1; echo TERM >>ran' TERM
echo "$$" >up
until [ -n "$asked" ]; do sleep 0.02; done
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done
)";

Workload served(const char* file, std::vector<std::string> sets) {
  return workload_of({"", "", file, std::move(sets)});
}

Rendered made(const Workload& workload, const char* target, std::optional<ImageAccelerator> accelerator = {}) {
  return rendered(workload, target, "files", "", accelerator).value();
}

std::string text_of(const Rendered& of, std::string_view path) {
  for (const RenderedFile& file : of.files)
    if (file.path == path) return file.text;
  return "";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::string refused(const char* target, const char* file, std::vector<std::string> sets) {
  const Result<Rendered> result = rendered(served(file, std::move(sets)), target, "files");
  return result.ok() ? "" : result.error().message + " | " + result.error().hint;
}

// No word of a command holds the key, which a list of processes would show; its file does.
void expect_keys_by_file(const Rendered& of) {
  std::string text;
  for (const RenderedFile& file : of.files) text += file.text;
  EXPECT_TRUE(has(text, "--token-file"));
  for (const auto& [what, line] : of.commands) text += line + "\n";
  EXPECT_FALSE(has(text, "-H ")) << text;
  EXPECT_FALSE(has(text, "--token ")) << text;
  for (std::size_t at = text.find("Authorization"); at != text.npos; at = text.find("Authorization", at + 1))
    EXPECT_EQ(text.rfind("printf 'header = \"", at) + 18, at) << "by a shell's own printf, to curl's standard input";
}

const std::vector<std::string> kHere = {"serve.from=/models/gpt2", "serve.replicas=1"};
std::vector<std::string> here(std::vector<std::string> more = {}) {
  more.insert(more.begin(), kHere.begin(), kHere.end());
  return more;
}

TEST(ServeOnSlurm, holds_a_machine_and_hears_of_its_end) {
  const Rendered job = made(served("serve-small.yaml", {"serve.from=runs/gpt2", "serve.replicas=2", "slurm.qos=long",
                                                        "resources={threads: 4, memory: 4GiB, longest: 7d}"}),
                            "slurm");
  const std::string batch = text_of(job, "serve.sbatch");
  for (const char* line : {"--nodes=1", "--cpus-per-task=8", "--mem=8192M", "--time=7-00:00:00", "--requeue",
                           "--signal=B:TERM@95", "--qos=long"})
    EXPECT_TRUE(has(batch, std::string("#SBATCH ") + line + "\n")) << line << "\n" << batch;
  EXPECT_TRUE(text_of(job, "start.sh")
                  .ends_with("\nexec \"$program\" serve runs/gpt2 --name serve-small --listen 0.0.0.0 --port "
                             "\"$SYSTOLE_PORT\" --token-file \"$SYSTOLE_TOKEN\" --slots 4 --context 512 --waiting 64 "
                             "--grace 30 --replicas 2\n"))
      << text_of(job, "start.sh");
  expect_keys_by_file(job);
  const Rendered gpu =
      made(served("serve-8b.yaml", here({"resources.gpus_per_node=1", "slurm.gpu_type=h100"})), "slurm");
  EXPECT_TRUE(has(text_of(gpu, "serve.sbatch"), "#SBATCH --gpus-per-node=h100:1\n"));
  EXPECT_TRUE(has(text_of(gpu, "start.sh"), " --device gpu\n"));
  EXPECT_TRUE(has(fmt::format("{}", fmt::join(gpu.warnings, "\n")), "resources.longest is not said"));
}

TEST(ServeOnHosts, refuses_what_would_serve_nobody) {
  EXPECT_TRUE(refused("slurm", "serve-small.yaml", {}).starts_with("serve.from: nothing says where the model is"));
  EXPECT_TRUE(refused("slurm", "serve-8b.yaml", {"serve.from=/m", "serve.replicas=2", "resources.gpus_per_node=2"})
                  .starts_with("serve.replicas: 2: several servers on one machine would take the same device"));
  EXPECT_TRUE(refused("slurm", "serve-small.yaml", here({"claims={/runs: runs}"})).starts_with("claims: "));
  EXPECT_TRUE(refused("ssh", "serve-small.yaml", here()).starts_with("ssh.hosts: on which machines?"));
  EXPECT_EQ(refused("ssh", "serve-small.yaml", here({"ssh.hosts=[a, b]"})),
            "serve.replicas: 1, and ssh.hosts are 2, each with one | serve.replicas: 2, or as many hosts");
  EXPECT_TRUE(refused("ssh", "serve-small.yaml", {"serve.from=m", "ssh.hosts=[a, b]"})
                  .starts_with("serve.from: 'm' is no path on the machines"));
  EXPECT_TRUE(refused("docker", "serve-small.yaml", {"image=a/b:1"}).starts_with("serve.from: nothing says"));
  EXPECT_TRUE(has(refused("gcloud", "serve-small.yaml", here()), "--on slurm or kubernetes or gke or ssh"));
}

class ServeScripts : public testing::Test {
 protected:
  ServeScripts() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-serve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    program("systole", kServer);
    program("squeue", "#!/bin/sh\necho \"$STATE\"\n");
    program("scontrol", "#!/bin/sh\necho \"$*\" >>scontrol\n");
    program("ssh", "#!/bin/sh\nfor line; do :; done\nexec sh -c \"$line\"\n");
  }
  ~ServeScripts() override {
    if (std::filesystem::exists(folder_ / "runs/serve-small/pid")) shell("sh files/serve.sh stop");
    std::filesystem::remove_all(folder_);
  }

  void program(const char* name, const std::string& text) const {
    write(std::string("bin/") + name, text);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms(0755));
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_text_file((folder_ / name).string(), text).value();
  }
  std::string read(const std::string& name) const {
    const Result<std::string> text = read_text_file((folder_ / name).string());
    return text.ok() ? *text : "";
  }
  // With the digests of this workload and of the stand-in, as start.sh verifies them.
  void render_here(const Workload& workload, const char* target, const std::string& place = "files") const {
    RenderRequest ask{.target = find_job_target_row(target), .workload = workload, .facts = builtin_facts()};
    const std::string yaml = to_yaml(workload);
    ask.workload_file = {yaml, sha256_of(yaml)};
    ask.program_sha256 = sha256_of(kServer);
    ask.version = "systole";
    ask.place = place;
    const Rendered files = render(ask).value();
    for (const RenderedFile& file : files.files) write(place + "/" + file.path, file.text);
  }
  Captured shell(const std::string& line, const std::string& state = "RUNNING", const std::string& fails = "") const {
    Command command;
    command.argv = {"bash", "-c", line};
    command.cwd = folder_.string();
    command.env = {{"PATH", (folder_ / "bin").string() + ":" + std::getenv("PATH")},
                   {"SYSTOLE", std::nullopt},
                   {"SYSTOLE_FILES", std::nullopt},
                   {"SYSTOLE_STATE", std::nullopt},
                   {"SLURM_JOB_ID", "7"},
                   {"SLURM_RESTART_COUNT", std::nullopt},
                   {"SLURMD_NODENAME", "n1"},
                   {"STATE", state},
                   {"FAILS", fails}};
    return run_captured(command).value();
  }
  int times_asked() const {
    const std::string ran = read("ran");
    int times = 0;
    for (std::size_t at = ran.find("TERM\n"); at != ran.npos; at = ran.find("TERM\n", at + 1)) ++times;
    return times;
  }

  std::filesystem::path folder_;
};

// Runs it until the server is up, and then does `then`, with $job the script's id.
constexpr const char* kJob =
    "rm -f up ran scontrol; bash files/serve.sbatch & job=$!; until [ -s up ]; do sleep 0.02; done; ";

TEST_F(ServeScripts, slurm_begins_it_again_when_its_time_is_up_and_not_when_it_is_stopped) {
  render_here(served("serve-small.yaml", here()), "slurm");
  const Captured up = shell(std::string(kJob) + "cat runs/serve-small/address; kill -TERM $job; wait $job");
  EXPECT_EQ(up.exit.code, 0) << up.err;
  EXPECT_EQ(times_asked(), 1) << read("ran");
  EXPECT_EQ(read("scontrol"), "requeue 7\n");
  EXPECT_TRUE(has(up.out,
                  "systole: once its model is loaded, it listens at http://n1:20007/v1; requests show the key "
                  "in runs/serve-small/token\nhttp://n1:20007/v1\n"))
      << up.out;
  const std::string token = read("runs/serve-small/token");
  EXPECT_EQ(token.size(), 32u);
  EXPECT_FALSE(has(read("ran"), token));
  EXPECT_EQ(std::filesystem::status(folder_ / "runs/serve-small/token").permissions(), std::filesystem::perms(0600));

  EXPECT_EQ(shell(std::string(kJob) + "kill -USR1 $job; wait $job").exit.code, 0);
  EXPECT_EQ(times_asked(), 1);
  EXPECT_EQ(read("scontrol"), "");
  EXPECT_EQ(read("runs/serve-small/token"), token) << "clients keep it";

  // A cancelled job's processes all get TERM: a second one would end answers at once.
  shell(std::string(kJob) + "kill -TERM \"$(cat up)\" $job; wait $job", "COMPLETING");
  EXPECT_EQ(times_asked(), 1);
  EXPECT_EQ(read("scontrol"), "");
}

TEST_F(ServeScripts, slurm_begins_a_killed_one_again_and_one_that_failed_not) {
  render_here(served("serve-small.yaml", here()), "slurm");
  EXPECT_EQ(shell("bash files/serve.sbatch", "RUNNING", "2").exit.code, 2);
  EXPECT_EQ(read("scontrol"), "");
  EXPECT_EQ(shell("bash files/serve.sbatch", "RUNNING", "137").exit.code, 137);
  EXPECT_EQ(read("scontrol"), "requeue 7\n");
  EXPECT_EQ(shell("SLURM_RESTART_COUNT=10 bash files/serve.sbatch", "RUNNING", "137").exit.code, 137);
  EXPECT_EQ(read("scontrol"), "requeue 7\n") << "no more";
  write("files/workload.yaml", "another");
  EXPECT_EQ(shell("bash files/serve.sbatch").exit.code, 3);
}

TEST_F(ServeScripts, slurm_finds_its_files_in_a_folder_of_any_name) {
  std::vector<std::string> places = {(folder_ / "it's $HOME").string()};
  for (const std::string& text : hostile_texts())
    if (text.size() < 255) places.push_back("f" + text);  // the longest name of a file
  for (const std::string& place : places) {
    render_here(served("serve-small.yaml", here()), "slurm", place);
    const Captured ended = shell("bash " + shell_word(place + "/serve.sbatch"), "RUNNING", "5");
    EXPECT_EQ(ended.exit.code, 5) << place << ": " << ended.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hacked"));
}

TEST_F(ServeScripts, plain_machines_start_it_once_and_let_it_finish) {
  const Rendered plain = made(served("serve-small.yaml", here({"ssh.hosts=[node1]", "resources.threads=2"})), "ssh");
  EXPECT_TRUE(text_of(plain, "start.sh")
                  .ends_with(" --port \"8000\" --token-file \"$SYSTOLE_TOKEN\" --slots 4 "
                             "--context 512 --waiting 64 --grace 30 --threads 2\n"));
  expect_keys_by_file(plain);
  render_here(served("serve-small.yaml", here({"ssh.hosts=[node1]"})), "ssh");
  const Captured started = shell("sh files/serve.sh start && sh files/serve.sh start && sh files/serve.sh look");
  EXPECT_EQ(started.exit.code, 0) << started.err;
  for (const char* line : {"node1: once its model is loaded, it listens at http://node1:8000/v1; the key is in ",
                           "node1: it serves already\n", "node1: a server goes on; "})
    EXPECT_TRUE(has(started.out, line)) << started.out;
  const std::string token = read("runs/serve-small/token");
  EXPECT_EQ(token.size(), 32u);
  const Captured stopped = shell("sh files/serve.sh stop; sh files/serve.sh look");
  EXPECT_EQ(stopped.exit.code, 1);
  EXPECT_EQ(stopped.out, "node1: no server\n");
  EXPECT_TRUE(has(stopped.err, "node1: no server; the end of its log: systole: the server ended with 0"));
  EXPECT_FALSE(has(read("ran") + read("runs/ran") + read("runs/serve-small/ran"), token));
}

TEST_F(ServeScripts, requests_show_the_first_key_of_a_file) {
  program("curl", "#!/bin/sh\ncat\n");
  write("keys", "# ours\n\nk1\nk2\n");
  EXPECT_EQ(shell(asking_with("keys")).out, "header = \"Authorization: Bearer k1\"");
}

TEST_F(ServeScripts, docker_draws_a_key_unless_there_is_one) {
  const Rendered container = made(served("serve-small.yaml", here({"image=a/b:1"})), "docker");
  std::string draw;
  for (const auto& [what, line] : container.commands)
    if (what == "token") draw = line;
  std::filesystem::create_directories(folder_ / "files");
  EXPECT_EQ(shell(draw).exit.code, 0);
  const std::string token = read("files/token");
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(std::filesystem::status(folder_ / "files/token").permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(shell(draw).exit.code, 0);
  EXPECT_EQ(read("files/token"), token) << "clients keep it";
}

TEST(ServeInDocker, a_container_has_the_model_its_key_and_a_check) {
  const Rendered cpu = made(served("serve-small.yaml", {"serve.from=/srv/a $b", "serve.replicas=2", "image=a/b:1",
                                                        "resources={threads: 2, memory: 1GiB}"}),
                            "docker");
  expect_keys_by_file(cpu);
  const Node compose = parse_yaml(text_of(cpu, "compose.yaml"), "compose.yaml").value();
  const Node& server = *compose.find("services")->find("server");
  std::string words;
  for (const Node& word : server.find("command")->items()) words += word.text() + "|";
  EXPECT_EQ(words,
            "serve|/srv/a $$b|--name|serve-small|--listen|0.0.0.0|--port|8000|--token-file|/run/secrets/token|--slots|"
            "4|--context|512|--waiting|64|--grace|30|--replicas|2|");
  const Node& mount = server.find("volumes")->items()[0];
  EXPECT_EQ(mount.find("source")->text(), "/srv/a $$b");
  EXPECT_EQ(*mount.find("source"), *mount.find("target"));
  EXPECT_EQ(mount.find("read_only")->text(), "true");
  EXPECT_EQ(server.find("ports")->items()[0].text(), "${SYSTOLE_ADDRESS:-127.0.0.1}:8000:8000");
  EXPECT_EQ(server.find("cpus")->text(), "4");
  EXPECT_EQ(server.find("stop_grace_period")->text(), "40s") << "longer than --grace";
  EXPECT_EQ(server.find("deploy"), nullptr);
  EXPECT_EQ(compose.find("secrets")->find("token")->find("file")->text(), "./token");
  EXPECT_TRUE(has(text_of(cpu, "Dockerfile.cpu"),
                  "\nEXPOSE 8000\nHEALTHCHECK --interval=5s --timeout=3s "
                  "--start-period=600s --retries=3 CMD [\"/bin/bash\""))
      << text_of(cpu, "Dockerfile.cpu");
  const Rendered gpu = made(served("serve-8b.yaml", here({"image=a/b:1"})), "docker", ImageAccelerator::cuda);
  const std::string text = text_of(gpu, "compose.yaml");
  EXPECT_TRUE(has(text, "driver: nvidia")) << text;
  EXPECT_TRUE(has(text, "--device")) << text;
  EXPECT_TRUE(has(text_of(gpu, "Dockerfile.cuda"), "\nHEALTHCHECK "));
}

TEST(ServeInDocker, its_check_asks_whether_it_is_ready) {
  const Rendered cpu = made(served("serve-small.yaml", here({"image=a/b:1"})), "docker");
  const std::string file = text_of(cpu, "Dockerfile.cpu");
  const std::size_t at = file.find(" CMD [") + 5;
  const Node words = parse_json(file.substr(at, file.find('\n', at) - at), "HEALTHCHECK").value();
  const auto code_of = [&](int status) {
    HttpServerOptions options;
    options.routes.push_back(
        {"GET", "/health/ready",
         [status](const HttpServerRequest&, HttpResponder to) { to.send({.status = status, .body = "{}"}); }, false});
    const std::unique_ptr<HttpServer> server = HttpServer::start(std::move(options)).value();
    Command command;
    for (const Node& word : words.items()) command.argv.push_back(word.text());
    command.argv.back() =
        replaced(command.argv.back(), "127.0.0.1/8000", fmt::format("127.0.0.1/{}", server->address().port));
    return run_captured(command).value().exit.code;
  };
  EXPECT_EQ(code_of(200), 0);
  EXPECT_NE(code_of(503), 0);
}

TEST_F(ServeScripts, a_server_whose_keeper_was_killed_is_stopped) {
  render_here(served("serve-small.yaml", here({"ssh.hosts=[node1]"})), "ssh");
  ASSERT_EQ(shell("sh files/serve.sh start").exit.code, 0);
  const Captured stopped =
      shell("read -r keeper session <runs/serve-small/pid; kill -KILL \"$keeper\"; sh files/serve.sh stop");
  EXPECT_EQ(stopped.exit.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "node1: no server\n");
}

// A process may be listed for a moment after its SIGKILL: the stand-in of cut says so of its first look.
TEST_F(ServeScripts, a_keeper_that_ends_while_it_is_asked_does_not_leave_its_server) {
  render_here(served("serve-small.yaml", here({"ssh.hosts=[node1]"})), "ssh");
  ASSERT_EQ(shell("sh files/serve.sh start").exit.code, 0);
  program("cut",
          "#!/bin/sh\n[ ! -e looked ] || PATH=/usr/bin:/bin exec cut \"$@\"\n: >looked\nread -r _ session <pid\n"
          "echo \"S $session\"\n");
  const Captured stopped =
      shell("read -r keeper session <runs/serve-small/pid; kill -KILL \"$keeper\"; sh files/serve.sh stop");
  EXPECT_EQ(stopped.exit.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "node1: no server\n");
}

// Its parent takes note of its end later, as on a busy machine: until then it is a zombie of the session.
TEST_F(ServeScripts, a_server_whose_killed_keeper_is_a_zombie_is_stopped) {
  render_here(served("serve-small.yaml", here({"ssh.hosts=[node1]"})), "ssh");
  ASSERT_EQ(shell("sh files/serve.sh start").exit.code, 0);
  const Captured stopped = shell(
      "read -r keeper session <runs/serve-small/pid; parent=$(cut -d' ' -f4 /proc/$keeper/stat); "
      "kill -STOP $parent; kill -KILL $keeper; (sleep 0.5; kill -CONT $parent) & sh files/serve.sh stop");
  EXPECT_EQ(stopped.exit.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "node1: no server\n");
}

TEST_F(ServeScripts, a_server_that_begins_late_is_waited_for_and_its_pid_is_not_an_earlier_ones) {
  render_here(served("serve-small.yaml", here({"ssh.hosts=[node1]"})), "ssh");
  program("setsid", "#!/bin/sh\nsleep 1.5\nexec /usr/bin/setsid \"$@\"\n");
  ASSERT_EQ(shell("mkdir -p runs/serve-small; echo 1 1 >runs/serve-small/pid").exit.code, 0);
  const Captured started = shell("sh files/serve.sh start");
  EXPECT_EQ(started.exit.code, 0) << started.err;
  const Captured stopped = shell("sh files/serve.sh stop");
  EXPECT_EQ(stopped.exit.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "node1: no server\n");
}

}  // namespace
}  // namespace systole
