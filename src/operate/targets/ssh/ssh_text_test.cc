#include "operate/targets/ssh/ssh_text.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

const std::string kTold =
    "Welcome to node1\n"
    "run line 00112233aabbccdd 00112233 cafe live\n began 00112233 0 1000 2\n ended 00112233 0 1100 76\n"
    " began 00112233 1 1200 2\n"
    "run other ffee ffee beef gone,stop\n began ffee 0 5 1\n ended ffee 0 9 75\n"
    "end\n";

struct OnTwo {
  explicit OnTwo(const std::string& leader, const std::string& follower = "live")
      : first(read_host_runs("run line 0011 00 cafe " + leader + "\nend\n").value()),
        second(read_host_runs("run line 0011 00 cafe " + follower + "\nend\n").value()) {
    answers = {{{"-", "a", "a"}, &first[0], nullptr}, {{"-", "b", "b"}, &second[0], nullptr}};
  }
  JobStatus status(const std::string& ledger = "began 00 0 1000 2\n") {
    first[0].ledger = ledger;
    return status_of(answers);
  }
  std::vector<HostRun> first, second;
  std::vector<HostAnswer> answers;
};

TEST(SshText, what_a_machine_tells_is_read_among_what_a_login_prints) {
  const std::vector<HostRun> runs = read_host_runs(kTold).value();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].run, "line");
  EXPECT_EQ(runs[0].submission, "00112233aabbccdd");
  EXPECT_EQ(runs[0].job, "00112233");
  EXPECT_EQ(runs[0].workload, "cafe");
  EXPECT_EQ(runs[0].state, HostRun::State::live);
  EXPECT_EQ(runs[0].ledger, "began 00112233 0 1000 2\nended 00112233 0 1100 76\nbegan 00112233 1 1200 2\n");
  EXPECT_EQ(runs[1].state, HostRun::State::gone);
  EXPECT_TRUE(runs[1].asked_to_stop);
}

TEST(SshText, an_answer_that_is_cut_anywhere_is_no_answer) {
  for (std::size_t length = 0; length < kTold.size() - 4; ++length)
    EXPECT_EQ(read_host_runs(kTold.substr(0, length)).error().kind, ErrorKind::io) << length;
}

TEST(SshText, a_run_is_at_what_its_leader_is) {
  EXPECT_EQ(OnTwo("live").status().state, RunState::running);
  EXPECT_EQ(OnTwo("live").status().reason, "");
  EXPECT_EQ(OnTwo("live").status().nodes, "a,b");
  EXPECT_EQ(OnTwo("live,stop").status().state, RunState::saving);
  const std::string ended = "began 00 0 1000 2\nended 00 0 1100 ";
  EXPECT_EQ(OnTwo("gone").status(ended + "0\n").state, RunState::finished);
  EXPECT_EQ(OnTwo("gone").status(ended + "0\n").ended_at, 1100);
  EXPECT_EQ(OnTwo("gone").status(ended + "76\n").state, RunState::failed);
  EXPECT_EQ(OnTwo("gone,stop").status(ended + "75\n").state, RunState::stopped);
  EXPECT_EQ(OnTwo("gone").status().reason, "a has lost its agent");
  EXPECT_EQ(OnTwo("rebooted").status().reason, "a was started again, without its agent");
  const JobStatus again = OnTwo("live").status(ended + "76\nbegan 00 1 1200 2\n");
  EXPECT_EQ(again.restarts, 1);
  EXPECT_EQ(again.began_at, 1200);
  EXPECT_EQ(again.ended_at, 0);
}

TEST(SshText, what_became_of_those_that_follow_is_said_by_name) {
  EXPECT_EQ(OnTwo("live", "gone").status().reason, "b has lost its agent");
  EXPECT_EQ(OnTwo("live", "rebooted").status().reason, "b was started again, without its agent");
  OnTwo none("live");
  none.answers[1].run = nullptr;
  EXPECT_EQ(none.status().reason, "b has no agent of it");
  OnTwo other("live");
  other.second[0].submission = "0022";
  EXPECT_EQ(other.status().reason, "b has no agent of it");
  OnTwo silent("live");
  const Error why = error(ErrorKind::io, "b does not answer: Connection refused");
  silent.answers[1] = {silent.answers[1].host, nullptr, &why};
  EXPECT_EQ(silent.status().reason, "b does not answer: Connection refused");
  EXPECT_EQ(silent.status().state, RunState::running);
}

TEST(SshText, machines_of_a_record_are_read_or_refused) {
  const std::vector<SshHost> hosts = read_hosts("- alice@a a\n2222 b b\n").value();
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0], (SshHost{"-", "alice@a", "a"}));
  EXPECT_EQ(hosts[1].port, "2222");
  EXPECT_FALSE(read_hosts("").ok());
  EXPECT_FALSE(read_hosts("a b\n").ok());
}

TEST(SshText, of_what_ssh_says_the_last_line_counts) {
  EXPECT_EQ(ssh_failure("banner\nssh: connect to host b port 22: Connection refused\r\n"),
            "connect to host b port 22: Connection refused");
  EXPECT_EQ(ssh_failure("alice@b: Permission denied (publickey).\n"), "alice@b: Permission denied (publickey)");
  EXPECT_EQ(ssh_failure(""), "ssh ended without a word");
}

}  // namespace
}  // namespace systole
