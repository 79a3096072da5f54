#pragma once
// Two plain machines for a test: a real sshd on loopback each, with its own home folder, under two names.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/waits.h"
#include "ground/net/socket.h"
#include "ground/process/capture.h"

namespace systole {

class SshMachines : public testing::Test {
 protected:
  static constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
  // One rank on each machine; exact, to compare interrupted with undisturbed runs.
  static constexpr const char* kJob =
      "systole: 1\nname: line\nmodel: { family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }\n"
      "data: { kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }\n"
      "train: { batch: 32, steps: 3000, exact: true, optimizer: { kind: sgd, rate: 0.01 } }\n"
      "checkpoint: { every: 100 }\nmesh: { data: 2 }\nresources: { threads: 1 }\nranks: { notice: 8s }\n";

  struct Machine {
    const char* name;
    int port = 0;
    std::filesystem::path home;
    std::optional<Process> sshd;
  };

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "sshd needs root to let somebody in";
    std::string name = (std::filesystem::temp_directory_path() / "systole-machines-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directories("/run/sshd");
    ASSERT_EQ(run("ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f me && mkdir bin shared")
                  .exit.code,
              0);
    write("ssh_config", fmt::format("IdentityFile {}/me\nUserKnownHostsFile {}/known\nStrictHostKeyChecking "
                                    "accept-new\nLogLevel ERROR\n",
                                    name, name));
    write("bin/ssh", fmt::format("#!/bin/sh\nexec /usr/bin/ssh -F {}/ssh_config \"$@\"\n", name));
    ASSERT_EQ(run("chmod +x bin/ssh").exit.code, 0);
    for (Machine* machine : {&first_, &second_}) {
      machine->port = free_port().value();
      machine->home = folder_ / fmt::format("home-{}", machine->name);
      std::filesystem::create_directories(machine->home);
      up(*machine);
    }
    write("job.yaml", kJob + hosts());
  }
  void TearDown() override {
    if (folder_.empty()) return;
    for (Machine* machine : {&first_, &second_}) {
      kill_all(*machine);
      down(*machine);
    }
    if (HasFailure()) std::cerr << run("tail -n 30 home-*/.systole/runs/*/*/*.log home-*/.systole/runs/*/*/ledger").out;
    std::filesystem::remove_all(folder_);
  }
  void up(Machine& machine) {
    const std::string config = fmt::format("sshd-{}", machine.name);
    write(config, fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}/host\nPidFile none\nUsePAM no\n"
                              "AuthorizedKeysFile {}/me.pub\nStrictModes no\nPermitRootLogin yes\n"
                              "PasswordAuthentication no\nSetEnv HOME={}\n",
                              machine.port, folder_.string(), folder_.string(), machine.home.string()));
    machine.sshd.emplace(
        Process::start(line(fmt::format("exec setpriv --pdeathsig TERM /usr/sbin/sshd -D -f $PWD/{} -E $PWD/{}.log",
                                        config, config)))
            .value());
    ASSERT_TRUE(connect_to({"127.0.0.1", machine.port}, deadline_after(Seconds(20.0))).ok());
  }
  static void down(Machine& machine) {
    if (machine.sshd) machine.sshd->stop(Seconds(5.0));
    machine.sshd.reset();
  }
  // Kills everything that our runs started there, like a power loss; sessions of sshd are its children.
  void kill_all(const Machine& machine) const {
    run(
        fmt::format("for pid in {}/.systole/runs/*/*/pid; do [ -e \"$pid\" ] && pkill -KILL -s \"$(cut -d' ' -f1 "
                    "<\"$pid\")\"; done; true",
                    machine.home.string()));
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string hosts() const {
    return fmt::format("ssh: {{ hosts: ['{}:{}', '{}:{}'] }}\nfolder: {}/shared\n", first_.name, first_.port,
                       second_.name, second_.port, folder_.string());
  }
  // A job that runs until it is stopped.
  void write_endless_job() const {
    const std::string job = kJob;
    write("job.yaml", std::string(job).replace(job.find("steps: 3000"), 11, "steps: 1000000") + hosts());
  }
  std::string hosts_of_first() const { return fmt::format("ssh: {{ hosts: ['{}:{}'] }}\n", first_.name, first_.port); }
  Command line(const std::string& text) const {
    Command command;
    command.argv = {"/bin/bash", "-c", text};
    command.cwd = folder_.string();
    command.env = {{"SYSTOLE", kSystole},
                   {"NO_COLOR", "1"},
                   {"PATH", (folder_ / "bin").string() + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}};
    return command;
  }
  Captured run(const std::string& text) const {
    CaptureOptions options;
    options.timeout = Seconds(180.0);
    return run_captured(line(text), options).value();
  }
  // Runs systole in this test's folder; expects exit code `code`.
  std::string systole(const std::string& words, int code = 0) const {
    const Captured ran = run("\"$SYSTOLE\" " + words);
    EXPECT_EQ(ran.exit.code, code) << words << "\n" << ran.out << ran.err;
    return ran.out + ran.err;
  }
  // A field of a submitted run in the output of `runs`.
  std::string told(const std::string& run_name, const char* what = "state") const {
    const Captured ran = run("\"$SYSTOLE\" --json runs");
    EXPECT_TRUE(ran.exit.ok()) << ran.out << ran.err;
    const Node document = parse_json(ran.out, "stdout").value();
    for (const Node& node : document.find("submitted")->items())
      if (node.find("run")->text() == run_name) return node.find(what)->text();
    return "none";
  }
  bool becomes(const std::string& run_name, const std::string& wanted, double seconds = 90) const {
    return waits([&] { return told(run_name) == wanted; }, seconds);
  }
  std::string output(const std::string& run_name) const { return run("\"$SYSTOLE\" logs " + run_name).out; }
  bool writes(const std::string& run_name, const std::string& part) const {
    return waits([&] { return output(run_name).find(part) != std::string::npos; });
  }
  // The expected result: the same run on this machine alone, in one process, since exact training does not depend on
  // their number.
  void expect_as_undisturbed(const std::string& run_folder) const {
    const Captured here = run("\"$SYSTOLE\" run job.yaml --set 'mesh={data: 1}' --folder undisturbed >here.log 2>&1");
    ASSERT_EQ(here.exit.code, 0) << text_of(folder_ / "here.log");
    const Captured same = run("\"$SYSTOLE\" ckpt diff undisturbed " + run_folder);
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }
  // Ranks and agents of a run, on both machines.
  std::string processes(const std::string& run_name) const {
    return run(fmt::format("pgrep -af -- '{}/shared/{}( |$)'", folder_.string(), run_name)).out;
  }
  std::string ours(const Machine& machine) const {
    return run(fmt::format("find {}/.systole 2>/dev/null", machine.home.string())).out;
  }

  std::filesystem::path folder_;
  Machine first_{.name = "127.0.0.1"}, second_{.name = "localhost"};
};

}  // namespace systole
