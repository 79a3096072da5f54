// Runs the scripts for plain machines here: with their own home folder, under each shell that may be sh.
#include "operate/targets/ssh/ssh_host.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "ground/store/sha256.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/ssh/ssh_text.h"

namespace systole {
namespace {

const std::string kProgram = "#!/bin/sh\nsleep 60\n";

class SshHostScript : public testing::TestWithParam<const char*> {
 protected:
  SshHostScript() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-host XXXXXX").string();  // with a space
    home_ = ::mkdtemp(name.data());
  }
  ~SshHostScript() override {
    run(HostCommand::kill);
    std::filesystem::remove_all(home_);
  }
  Captured run(HostCommand act, const std::string& input = "", const std::string& run_name = "line") const {
    Command command;
    command.argv = {GetParam(), "-c", script_of(act, values(run_name))};
    command.env = {{"HOME", home_}};
    CaptureOptions options;
    options.input = input;
    options.timeout = Seconds(30.0);
    options.limit = Bytes(8 << 20);
    return run_captured(command, options).value();
  }
  std::vector<std::pair<std::string, std::string>> values(const std::string& run_name) const {
    return {{"run", run_name},
            {"name", "node-1"},
            {"submission", submission_},
            {"job", submission_.substr(0, 8)},
            {"workload", "cafe"},
            {"program", sha256_of(kProgram)},
            {"folder", folder_},
            {"leader", "node-1"},
            {"port", "7000"},
            {"nodes", "1"},
            {"from", from_}};
  }
  // The submitter's dialogue; host.sh records that it began and then runs `body`.
  std::string begin(const std::string& body) const {
    const std::string place = home_ + "/packing";
    std::filesystem::create_directories(place);
    write_text_file(place + "/host.sh",
                    "cd \"$SYSTOLE_STATE\"; set -- $(cut -d')' -f2- /proc/$$/stat); echo \"$$ $(cat "
                    "/proc/sys/kernel/random/boot_id) ${20}\" >pid\n"
                    "echo \"began $SYSTOLE_JOB 0 $(date +%s) $SYSTOLE_NODES\" >>ledger\n" +
                        body)
        .value();
    write_text_file(place + "/start.sh", "verify " + sha256_of(kProgram) + "\n").value();
    Command command;
    command.argv = {"tar", "-C", place, "-cf", "-", "host.sh", "start.sh"};
    const std::string files = run_captured(command).value().out;
    return fmt::format("room {}\nprogram {}\n{}files {}\n0123\n{}start\n", kProgram.size(), kProgram.size(), kProgram,
                       files.size(), files);
  }
  std::vector<HostRun> query(const std::string& run_name = "line") const {
    return read_host_runs(run(HostCommand::query, "", run_name).out).value();
  }
  std::string mine(const std::string& file) const { return home_ + "/.systole/runs/line/node-1/" + file; }
  std::string text(const std::string& path) const {
    const Result<std::string> text = read_text_file(path);
    return text.ok() ? *text : "";
  }
  std::string home_, submission_ = "00112233aabbccdd", folder_ = "runs/line", from_ = "0";
};

TEST_P(SshHostScript, begins_what_it_is_given_and_lets_it_live) {
  const Captured begun = run(HostCommand::begin, begin("exec sleep 60\n"));
  EXPECT_EQ(begun.out, "free\nwants\nok\nok\nok\n") << begun.err;
  EXPECT_EQ(text(home_ + "/.systole/programs/" + sha256_of(kProgram)), kProgram);
  EXPECT_EQ(text(mine("token")), "0123");
  struct stat status {};
  ASSERT_EQ(::stat(mine("token").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const std::vector<HostRun> runs = query();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].state, HostRun::State::live);
  EXPECT_EQ(runs[0].submission, submission_);
  EXPECT_TRUE(runs[0].ledger.starts_with("began 00112233 0 "));
  EXPECT_EQ(query("").size(), 1u) << "of all runs";
  EXPECT_EQ(query("another").size(), 0u);
  EXPECT_EQ(run(HostCommand::begin, "").out, "runs " + submission_ + " 00112233\n");
  EXPECT_EQ(query()[0].state, HostRun::State::live) << "whoever only asks ends nothing";
  EXPECT_NE(run(HostCommand::purge).exit.code, 0) << "it runs";
  EXPECT_EQ(run(HostCommand::begin, "end\n").out, "runs " + submission_ + " 00112233\nok\n");
  EXPECT_EQ(query()[0].state, HostRun::State::gone);
}

TEST_P(SshHostScript, what_is_not_started_when_the_connection_ends_leaves_nothing) {
  std::string most = begin("exec sleep 60\n");
  most.resize(most.size() - std::string("start\n").size());
  EXPECT_EQ(run(HostCommand::begin, most).out, "free\nwants\nok\nok\n");
  EXPECT_FALSE(std::filesystem::exists(mine("")));
  EXPECT_TRUE(std::filesystem::is_empty(home_ + "/.systole/programs"));
}

TEST_P(SshHostScript, what_is_taken_back_is_gone) {
  EXPECT_EQ(run(HostCommand::begin, begin("exec sleep 60\n") + "undo\n").out, "free\nwants\nok\nok\nok\nok\n");
  EXPECT_FALSE(std::filesystem::exists(mine("")));
  EXPECT_EQ(query().size(), 0u);
}

TEST_P(SshHostScript, a_program_that_arrives_otherwise_is_refused) {
  std::string changed = begin("exec sleep 60\n");
  changed.replace(changed.find("sleep 60\n"), 8, "sleep 61");
  EXPECT_EQ(run(HostCommand::begin, changed.substr(0, changed.find("files "))).out,
            "free\nwants\nno what arrived is not the program that was sent\n");
  EXPECT_TRUE(std::filesystem::is_empty(home_ + "/.systole/programs"));
}

TEST_P(SshHostScript, one_that_ends_before_it_begins_is_said_with_its_last_words) {
  const std::string out = run(HostCommand::begin, begin("rm -f pid ledger; echo the reason; exit 3\n")).out;
  EXPECT_NE(out.find("no it does not begin: the reason"), out.npos) << out;
}

TEST_P(SshHostScript, an_agent_of_another_boot_or_of_another_start_is_not_ours) {
  run(HostCommand::begin, begin("exec sleep 60\n"));
  const std::string pid = text(mine("pid"));
  const auto with = [&](std::size_t word, const std::string& other) {
    std::string changed;
    std::istringstream words(pid);
    std::string one;
    for (std::size_t i = 0; words >> one; ++i) changed += (i == word ? other : one) + " ";
    write_text_file(mine("pid"), changed + "\n").value();
  };
  with(1, "another-boot");
  EXPECT_EQ(query()[0].state, HostRun::State::rebooted);
  with(2, "1");
  EXPECT_EQ(query()[0].state, HostRun::State::gone);
  run(HostCommand::kill);
  write_text_file(mine("pid"), pid).value();
  EXPECT_EQ(query()[0].state, HostRun::State::live) << "what is not ours is not ended";
}

TEST_P(SshHostScript, asked_to_stop_it_gets_a_signal_and_killed_it_has_an_end_in_its_ledger) {
  run(HostCommand::begin, begin("trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done\n"));
  EXPECT_EQ(run(HostCommand::stop).exit.code, 0);
  for (int i = 0; i < 200 && query()[0].state == HostRun::State::live; ++i) ::usleep(20000);
  EXPECT_EQ(run(HostCommand::read).out, "asked\n");
  EXPECT_TRUE(query()[0].asked_to_stop);
  submission_ = "445566770011";
  run(HostCommand::begin, begin("sleep 60\n"));
  EXPECT_FALSE(query()[0].asked_to_stop) << "that was the one before";
  EXPECT_EQ(run(HostCommand::kill).exit.code, 0);
  const HostRun ended = query()[0];
  EXPECT_EQ(ended.state, HostRun::State::gone);
  EXPECT_NE(ended.ledger.find("began 00112233 0"), ended.ledger.npos) << "that of all submissions";
  EXPECT_TRUE(ended.ledger.ends_with(" 137\n")) << ended.ledger;
  EXPECT_EQ(query()[0].ledger, ended.ledger) << "noted once";
}

TEST_P(SshHostScript, a_log_comes_in_parts_that_one_connection_can_carry) {
  run(HostCommand::begin, begin("exit 0\n"));
  std::string log;
  for (int i = 0; log.size() < 5'000'000; ++i) log += fmt::format("line {}\n", i);
  write_text_file(mine("00112233.log"), log).value();
  const std::string first = run(HostCommand::read).out;
  EXPECT_EQ(first.size(), std::size_t{4} << 20);
  from_ = std::to_string(first.size());
  EXPECT_TRUE(first + run(HostCommand::read).out == log);
  from_ = std::to_string(log.size());
  EXPECT_EQ(run(HostCommand::read).out, "");
}

TEST_P(SshHostScript, purge_leaves_nothing) {
  run(HostCommand::begin, begin("exit 0\n"));
  EXPECT_EQ(run(HostCommand::purge).exit.code, 0);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.systole"));
  EXPECT_TRUE(std::filesystem::is_directory(home_ + "/runs/line")) << "its own folder stays";
}

TEST_P(SshHostScript, hostile_folders_are_folders_and_nothing_else) {
  for (const std::string& hostile : hostile_texts()) {
    if (hostile.find('\0') != hostile.npos || hostile.empty() || hostile.size() > 200) continue;
    folder_ = "runs/" + hostile;
    const std::string out = run(HostCommand::begin, "room 1\n").out;
    EXPECT_EQ(out, "free\nwants\n") << hostile;
    EXPECT_TRUE(std::filesystem::is_directory(home_ + "/" + folder_)) << hostile;
  }
}

INSTANTIATE_TEST_SUITE_P(By, SshHostScript, testing::Values("dash", "bash"),
                         [](const auto& shell) { return std::string(shell.param); });

}  // namespace
}  // namespace systole
