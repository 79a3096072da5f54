// Rendered files for plain machines, with a real sshd on loopback; its two names are two machines.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/waits.h"
#include "ground/net/socket.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"
#include "laws/slow_steps.h"

namespace systole {
namespace {

constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }\n"
    "data: { kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }\n"
    "train: { batch: 32, steps: 4000, exact: true, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "checkpoint: { every: 100 }\nmesh: { data: 2 }\nresources: { threads: 1 }\nranks: { notice: 8s }\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Ssh : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "sshd needs root to let somebody in";
    std::string name = (std::filesystem::temp_directory_path() / "systole-ssh-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directories("/run/sshd");
    port_ = free_port().value();
    ASSERT_EQ(run("ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f me && mkdir bin runs")
                  .exit.code,
              0);
    write("sshd_config",
          fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}/host\nPidFile {}/sshd.pid\nUsePAM no\n"
                      "AuthorizedKeysFile {}/me.pub\nStrictModes no\nPermitRootLogin yes\n"
                      "PasswordAuthentication no\nSetEnv SYSTOLE={}\n",
                      port_, name, name, name, kSystole));
    write("ssh_config",
          fmt::format(
              "IdentityFile {}/me\nUserKnownHostsFile {}/known\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n",
              name, name));
    write("bin/ssh", fmt::format("#!/bin/sh\nexec /usr/bin/ssh -F {}/ssh_config \"$@\"\n", name));
    ASSERT_EQ(run("chmod +x bin/ssh").exit.code, 0);
    sshd_.emplace(
        Process::start(line("exec setpriv --pdeathsig TERM /usr/sbin/sshd -D -f $PWD/sshd_config -E $PWD/sshd.log"))
            .value());
    ASSERT_TRUE(connect_to({"127.0.0.1", port_}, deadline_after(Seconds(20.0))).ok()) << text_of(folder_ / "sshd.log");
    write("job.yaml", kJob);
  }
  void TearDown() override {
    if (folder_.empty()) return;
    if (sshd_) sshd_->stop(Seconds(5.0));
    if (HasFailure()) std::cerr << text_of(folder_ / "log") << text_of(folder_ / "sshd.log");
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  Command line(const std::string& text) const {
    Command command;
    command.argv = {"/bin/sh", "-c", text};
    command.cwd = folder_.string();
    command.env = {{"SYSTOLE", kSystole},
                   {"NO_COLOR", "1"},
                   {"PATH", (folder_ / "bin").string() + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}};
    return command;
  }
  Captured run(const std::string& text) const {
    CaptureOptions options;
    options.timeout = Seconds(120.0);
    return run_captured(line(text), options).value();
  }
  std::string hosts() const { return fmt::format("'127.0.0.1:{0}', 'localhost:{0}'", port_); }
  void render(const std::string& hosts) const {
    const Captured made = run(
        fmt::format("\"$SYSTOLE\" render job.yaml --on ssh --set \"ssh.hosts=[{}]\" --set folder=$PWD/runs", hosts));
    ASSERT_EQ(made.exit.code, 0) << made.err;
  }
  void expect_as_undisturbed() const {
    // In one process, since exact training does not depend on their number.
    ASSERT_EQ(run("\"$SYSTOLE\" run job.yaml --set 'mesh={data: 1}' --folder undisturbed").exit.code, 0);
    const Captured same = run("\"$SYSTOLE\" ckpt diff undisturbed runs/line");
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }
  bool none_is_left() const {
    return waits([&] { return run("pgrep -f -- \"--folder $PWD/runs/line\"").exit.code == 1; }, 20);
  }
  std::filesystem::path folder_;
  int port_ = 0;
  std::optional<Process> sshd_;
};

TEST_F(Ssh, two_machines_train_what_one_does) {
  render(hosts());
  const Captured done = run("sh rendered/ssh/run.sh");
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(done.out, "finished at step 4000")) << done.out << done.err;
  expect_as_undisturbed();
  EXPECT_EQ(run("ls runs/line | grep token").exit.code, 1) << "what they share is no longer there";
}

TEST_F(Ssh, whoever_is_gone_leaves_nobody_behind_and_begun_again_it_comes_to_the_same_bytes) {
  run(slow_steps(400));
  render(hosts());
  for (const int signal : {SIGKILL, SIGTERM}) {
    const std::string log = fmt::format("log{}", signal);
    Process started = Process::start(line("exec sh rendered/ssh/run.sh >" + log + " 2>&1")).value();
    const std::string step = signal == SIGKILL ? "step 50 " : "step 200 ";
    ASSERT_TRUE(waits([&] { return has(text_of(folder_ / log), step); })) << text_of(folder_ / log);
    const std::string token = text_of(folder_ / "runs/line/token.127.0.0.1");
    EXPECT_EQ(token.size(), 32u);
    EXPECT_FALSE(has(run("ps -eo args").out, token)) << "in no list of processes";
    EXPECT_NE(run("grep -rF " + token + " runs/line/events runs/line/ranks " + log).exit.code, 0)
        << "in nothing written";
    ASSERT_TRUE(started.signal(signal).ok());
    const Exit ended = started.wait();
    if (signal == SIGTERM) {
      EXPECT_EQ(ended.code, 75) << text_of(folder_ / log);
      EXPECT_TRUE(has(text_of(folder_ / log), "stopped at step "));
    }
    EXPECT_TRUE(none_is_left()) << run("pgrep -af systole").out;
  }
  const Captured done = run("sh rendered/ssh/run.sh");
  EXPECT_EQ(done.exit.code, 0) << done.err;
  expect_as_undisturbed();
}

TEST_F(Ssh, a_machine_that_is_not_there_is_named_and_nothing_is_started) {
  render(fmt::format("'127.0.0.1:{}', 'localhost:1'", port_));
  const Captured said = run("sh rendered/ssh/run.sh");
  EXPECT_EQ(said.exit.code, 3);
  EXPECT_TRUE(has(said.err, "systole: cannot bring the files to localhost")) << said.err;
  EXPECT_TRUE(none_is_left());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/line/plan.json"));
}

TEST_F(Ssh, what_was_changed_on_the_way_is_not_started) {
  render(hosts());
  ASSERT_EQ(run("echo '# one more line' >>rendered/ssh/workload.yaml").exit.code, 0);
  const Captured said = run("sh rendered/ssh/run.sh");
  EXPECT_EQ(said.exit.code, 3) << said.out;
  EXPECT_TRUE(has(said.err, "is not the file that was rendered")) << said.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/line/plan.json"));
}

}  // namespace
}  // namespace systole
