// The command line with endless files, secrets that others may read, and text that would control a terminal or reveal a
// password.

#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kProgram = "systole: 1\nname: mine\ncommand: [sh, program.sh]\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class HostileInput : public testing::Test {
 protected:
  void refused(const std::string& line, const std::string& why, int code = 2) const {
    const Captured done = systole_.shell(line);
    EXPECT_EQ(done.exit.code, code) << line << "\n" << done.out << done.err;
    EXPECT_TRUE(has(done.err, why)) << line << "\n" << done.err;
  }
  SystoleRunner systole_;
};

TEST_F(HostileInput, a_device_is_no_document) {
  systole_.write("job.yaml", kProgram);
  systole_.write("program.sh", "");
  for (const char* line : {"check /dev/zero", "run /dev/zero", "import /dev/zero", "render /dev/zero --on slurm",
                           "run --plan /dev/zero", "prove /dev/zero --on v5e:1x1",
                           "run job.yaml --ranks 2 --rendezvous 127.0.0.1:7000 --host 127.0.0.1 --token-file /dev/zero",
                           "ckpt public-key file:/dev/zero"})
    refused(std::string("\"$SYSTOLE\" ") + line, "'/dev/zero' is a device, not a file");
}

TEST_F(HostileInput, what_has_no_end_is_read_to_its_limit) {
  refused("yes '# endless' | \"$SYSTOLE\" check -", "'standard input' is larger than 4.00 MiB");
  refused("yes '# endless' | \"$SYSTOLE\" import -", "'standard input' is larger than 256 MiB");
  refused("truncate -s 1T job.yaml; \"$SYSTOLE\" check job.yaml", "'job.yaml' is larger than 4.00 MiB");
}

TEST_F(HostileInput, a_document_may_come_by_a_pipe) {
  systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: ['true']\n");
  for (const char* line : {"cat job.yaml | \"$SYSTOLE\" check -", "cat job.yaml | \"$SYSTOLE\" check /dev/stdin"})
    EXPECT_EQ(systole_.shell(line).exit.code, 0) << line << systole_.shell(line).err;
}

TEST_F(HostileInput, a_hundred_unknown_keys_are_told_and_the_others_counted) {
  std::string text = kProgram;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("commandeer{}: 1\n", i);
  systole_.write("job.yaml", text);
  const Captured done = systole_.run({"check", "job.yaml"});
  EXPECT_EQ(done.exit.code, 2);
  EXPECT_TRUE(has(done.err, "and 99900 more unknown keys")) << done.err.substr(0, 2000);
  EXPECT_LT(std::count(done.err.begin(), done.err.end(), '\n'), 410) << "four lines each, with the line in question";
}

TEST_F(HostileInput, a_token_that_others_may_read_is_refused) {
  systole_.write("job.yaml", kProgram);
  systole_.write("token", "00112233445566778899aabbccddeeff\n");
  const std::string run =
      "chmod 644 token; \"$SYSTOLE\" run job.yaml --ranks 2 --rendezvous 127.0.0.1:7000 --host 127.0.0.1 --token-file ";
  refused(run + "token", "'token' may be read by others than its owner");
  refused(run + "token", "hint: chmod 600 token");
  refused(run + "none", "hint: make one, and copy it to every node: (umask 077; od -An");
}

TEST_F(HostileInput, a_key_that_others_may_read_is_refused) {
  systole_.write("key", std::string(64, 'a') + "\n");
  refused("chmod 640 key; \"$SYSTOLE\" ckpt public-key file:key", "hint: chmod 600 key");
  EXPECT_EQ(systole_.shell("chmod 600 key; \"$SYSTOLE\" ckpt public-key file:key").exit.code, 0);
}

TEST_F(HostileInput, text_of_others_is_no_order_to_a_terminal) {
  systole_.write("job.yaml", std::string(kProgram) + "\"ti\\e]0;tle\\a\\u009b2J\": 1\n");
  const Captured checked = systole_.run({"check", "job.yaml"});
  EXPECT_EQ(checked.exit.code, 2);
  EXPECT_TRUE(has(checked.err, "unknown key 'ti\\u001b]0;tle\\u0007\\u009b2J'")) << checked.err;
  systole_.write("program.sh", "printf 'a\\033[2J\\bb\\n10%%\\r20%%\\r\\n'\n");
  systole_.write("job.yaml", kProgram);
  const Captured ran = systole_.run({"run", "job.yaml", "--ranks", "1"});
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "[rank 0] a\\u001b[2J\\u0008b\n")) << ran.err;
  EXPECT_TRUE(has(ran.err, "[rank 0] 20%\n")) << ran.err;
  const Captured name = systole_.run({"check", "a\x1b[31mb\x9b.yaml"});
  EXPECT_TRUE(has(name.err, "'a\\u001b[31mb\\x9b.yaml'")) << name.err;
  const Captured document = systole_.run({"check", "a\x7f\xc2\x9b.yaml", "--json"});
  EXPECT_TRUE(has(document.out, "'a\\u007f\\u009b.yaml'")) << document.out;
  for (const Captured* said : {&checked, &ran, &name, &document})
    for (const std::string& text : {said->out, said->err})
      EXPECT_EQ(text.find_first_of("\x1b\x07\x08\x7f\r"), text.npos) << text;
}

TEST_F(HostileInput, an_address_is_told_without_its_password) {
  systole_.write("job.yaml", std::string(kProgram) + "'ftp://me:hunter2@host/x': 1\n");
  for (const std::string line : {"check https://me:hunter2@host/job.yaml", "check job.yaml", "check job.yaml --json"}) {
    const Captured done = systole_.shell("\"$SYSTOLE\" " + line);
    EXPECT_EQ(done.exit.code, 2) << done.err;
    EXPECT_TRUE(has(done.err, "://***@host/")) << done.err;
    EXPECT_FALSE(has(done.out + done.err, "hunter2")) << done.out << done.err;
  }
}

TEST_F(HostileInput, an_option_of_ssh_is_no_machine) {
  systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: ['true']\nssh: { hosts: [-oProxyCommand=touch] }\n");
  refused("\"$SYSTOLE\" check job.yaml", "job.yaml:4:16: error: ssh.hosts: '-oProxyCommand=touch' is no [USER@]HOST");
}

class Kubeconfig : public HostileInput {
 protected:
  // Submits to a cluster at that address; the workload is missing, so nothing is sent.
  Captured submitted(const std::string& server, const std::string& more = "") const {
    systole_.write_secret("config",
                          "current-context: near\n"
                          "contexts: [{ name: near, context: { cluster: here, user: me } }]\n"
                          "clusters: [{ name: here, cluster: { server: '" +
                              server + "'" + more + " } }]\n" + "users: [{ name: me, user: { token: hunter2 } }]\n");
    return systole_.shell("KUBECONFIG=config \"$SYSTOLE\" submit none.yaml --on kubernetes");
  }
};

TEST_F(Kubeconfig, credentials_go_over_tls_or_stay_on_this_machine) {
  for (const char* server : {"http://far.test", "http://10.0.0.1:8080", "http://127.far.test", "http://[::2]:1"}) {
    const Captured said = submitted(server);
    EXPECT_EQ(said.exit.code, 2) << said.err;
    EXPECT_TRUE(has(said.err, "config:3:")) << said.err;
    EXPECT_TRUE(has(said.err, "without TLS")) << said.err;
  }
  for (const char* server : {"http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://far.test"})
    EXPECT_TRUE(has(submitted(server).err, "there is no workload file")) << submitted(server).err;
  for (const char* server : {"http://127.0.0.1:80@far.test", "https://me:hunter2@far.test"}) {
    const Captured said = submitted(server);
    EXPECT_EQ(said.exit.code, 2) << said.err;
    EXPECT_TRUE(has(said.err, "has a user in it")) << said.err;
    EXPECT_FALSE(has(said.err, "hunter2")) << said.err;
  }
}

TEST_F(Kubeconfig, a_server_that_is_not_verified_is_warned_of) {
  const Captured said = submitted("https://far.test", ", insecure-skip-tls-verify: true");
  EXPECT_TRUE(has(said.err, "warning: INSECURE: ")) << said.err;
  EXPECT_TRUE(has(said.err, "https://far.test")) << said.err;
  EXPECT_FALSE(has(submitted("https://far.test").err, "warning")) << "only then";
}

TEST_F(Kubeconfig, that_others_may_read_is_refused) {
  submitted("https://far.test");
  refused("chmod 644 config; KUBECONFIG=config \"$SYSTOLE\" submit none.yaml --on kubernetes",
          "hint: chmod 600 config");
}

}  // namespace
}  // namespace systole::cli
