// submit, runs, logs, stop, resume, exec and results on plain machines: the same law as laws/slurm_submit_test.cc.
#include <set>
#include <sstream>

#include "ground/base/testing/places.h"
#include "laws/drawn_points.h"
#include "laws/slow_steps.h"
#include "laws/ssh_machines.h"

namespace systole {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class SshSubmit : public SshMachines {};

TEST_F(SshSubmit, is_followed_to_its_end_and_its_results_are_brought_home) {
  EXPECT_TRUE(has(systole("submit job.yaml --on ssh"), "line: submitted as ssh job "));
  const std::string followed = systole("logs -f line");
  EXPECT_TRUE(has(followed, "finished at step 3000")) << followed;
  EXPECT_TRUE(has(followed, "[finished as ssh job ")) << followed;
  EXPECT_EQ(told("line"), "finished");
  EXPECT_TRUE(has(systole("results line --out home"), "home: checkpoint of step 3000, verified"));
  expect_as_undisturbed("home");
  EXPECT_NE(told("line", "node_seconds"), "0");
  EXPECT_TRUE(has(systole("submit job.yaml --on ssh", 1), "the run 'line' has finished"));
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
  const std::string audit = "runs/.submitted/audit.jsonl";
  const std::pair<const char*, const char*> tampered[] = {{"2s/submitted/forgotten/", "changed"},
                                                          {"1d", "does not follow"},
                                                          {"1h;1d;2G", "does not follow"},
                                                          {"$d", "cut off"}};
  for (const auto& [edit, why] : tampered) {
    run(fmt::format("cp {0} kept; sed -i '{1}' {0}", audit, edit));
    EXPECT_TRUE(has(systole("runs --verify-audit", 1), why)) << edit;
    run("cp kept " + audit);
  }
  EXPECT_EQ(processes("line"), "");
  systole("stop --purge line");
  EXPECT_EQ(ours(first_) + ours(second_), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/.submitted/line"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "shared/line/checkpoints")) << "its results stay";
}

TEST_F(SshSubmit, the_guides_commands_print_what_their_pages_have) {
  const Captured ran =
      run(fmt::format("export GUIDE_HOSTS=\"['{}:{}', '{}:{}']\" GUIDE_FOLDER={}/shared; env -u GTEST_OUTPUT "
                      "python3 " SYSTOLE_SOURCE_DIR "/tests/guides/pages.py \"$SYSTOLE\" ssh",
                      first_.name, first_.port, second_.name, second_.port, folder_.string()));
  EXPECT_EQ(ran.exit.code, 0) << ran.out << ran.err;
}

TEST_F(SshSubmit, a_stopped_run_saves_and_resumes_to_the_same_bytes) {
  run(slow_steps(300));
  systole("submit job.yaml --on ssh");
  ASSERT_TRUE(writes("line", "step 50 ")) << output("line");
  EXPECT_TRUE(has(systole("stop line"), "stopped as ssh job")) << output("line");
  EXPECT_EQ(told("line", "reason"), "saved");
  EXPECT_TRUE(has(output("line"), "stopped with its state saved")) << output("line");
  EXPECT_TRUE(has(systole("submit job.yaml --on ssh", 1), "systole resume line"));
  EXPECT_TRUE(has(systole("resume line"), "submitted again as ssh job"));
  EXPECT_TRUE(has(systole("logs -f line"), "finished at step 300"));
  EXPECT_EQ(told("line"), "finished");
  expect_as_undisturbed("shared/line");
}

// A dollar per second, for both machines.
TEST_F(SshSubmit, at_its_budget_a_run_saves_and_stops_and_goes_on_with_more_to_the_same_bytes) {
  run(slow_steps(700));
  EXPECT_TRUE(has(systole("submit job.yaml --on ssh --set objective.budget=8", 2), "nobody knows what an hour of"));
  EXPECT_EQ(told("line"), "none");
  systole("submit job.yaml --on ssh --set resources.price=1800 --set objective.budget=8");
  ASSERT_TRUE(becomes("line", "budget_used")) << output("line");
  EXPECT_TRUE(has(told("line", "reason"), "its budget is used")) << told("line", "reason");
  EXPECT_EQ(processes("line"), "") << "no machine begins it again";
  const double cost = std::stod(told("line", "dollars"));
  EXPECT_LE(cost, 9.0) << "over it by a second at most: the ledger's are whole";
  EXPECT_GE(cost, 3.0);
  EXPECT_TRUE(has(systole("resume line", 2), "its budget is $8.00"));
  EXPECT_TRUE(has(systole("resume line --set objective.budget=1000"), "submitted again as ssh job"));
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  EXPECT_GT(std::stod(told("line", "dollars")), cost);
  expect_as_undisturbed("shared/line");
}

TEST_F(SshSubmit, submitted_twice_at_once_it_is_one_gang) {
  write_endless_job();
  run("for i in 1 2 3 4; do \"$SYSTOLE\" submit job.yaml --on ssh >out.$i 2>&1 & done; wait");
  const std::string said = run("cat out.*").out;
  // An agent's guard is a fork of it, with its words. The brackets keep this shell, whose words these are, out.
  const auto agents = [&] {
    return run("for pid in $(pgrep -f -- '[-]-folder " + (folder_ / "shared/line").string() +
               " .*--node'); do cat /proc/$pid/comm; done 2>/dev/null | grep -vcx systole-guard")
        .out;
  };
  ASSERT_TRUE(writes("line", "step ")) << said << processes("line");
  EXPECT_TRUE(waits([&] { return agents() == "2\n"; }, 30)) << agents() << said << processes("line");
  // At the same time from another folder, without its record: takes over a run of the same workload.
  const Captured other = run("mkdir other; cd other; \"$SYSTOLE\" submit ../job.yaml --on ssh");
  EXPECT_EQ(other.exit.code, 0) << other.err;
  EXPECT_TRUE(has(other.out, "had been submitted as ssh job")) << other.out;
  EXPECT_EQ(run("cd other; \"$SYSTOLE\" stop --now line").exit.code, 0);
  EXPECT_TRUE(waits([&] { return processes("line").empty(); }, 20)) << processes("line");
  EXPECT_EQ(told("line"), "stopped");
}

TEST_F(SshSubmit, killed_at_any_point_it_comes_to_one_gang) {
  write("small.yaml",
        "systole: 1\nname: small\ncommand: [sh, -c, 'echo ran >>$SYSTOLE_RUN.$RANK; sleep 0.3']\n" + hosts());
  for (const int i : drawn_points(10, 3)) {
    const std::string name = fmt::format("small-{}", i);
    run(fmt::format("timeout -s KILL {} \"$SYSTOLE\" submit small.yaml --on ssh --run {} >/dev/null 2>&1",
                    0.05 + 0.12 * i, name));
    const Captured again = run(fmt::format("\"$SYSTOLE\" submit small.yaml --on ssh --run {}", name));
    EXPECT_TRUE(again.exit.code == 0 || has(again.err, "has finished")) << name << again.out << again.err;
    ASSERT_TRUE(becomes(name, "finished")) << name << told(name) << told(name, "reason") << output(name);
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(text_of(folder_ / fmt::format("shared/{}.{}", name, rank)), "ran\n") << name << " ran twice";
  }
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
}

TEST_F(SshSubmit, a_machine_that_is_not_there_is_named_and_nothing_is_begun) {
  down(second_);
  const std::string said = systole("submit job.yaml --on ssh", 3);
  EXPECT_TRUE(has(said, "localhost does not answer: connect to host localhost port")) << said;
  EXPECT_TRUE(has(said, "hint: ssh -o BatchMode=yes -p ")) << said;
  EXPECT_EQ(told("line"), "none");
  EXPECT_FALSE(has(ours(first_), "/runs/line"));
}

TEST_F(SshSubmit, a_machine_without_room_is_named_and_nothing_is_begun) {
  ASSERT_EQ(run(fmt::format("mount -t tmpfs -o size=20m tmpfs {}", second_.home.string())).exit.code, 0);
  const std::string said = systole("submit job.yaml --on ssh", 1);
  run(fmt::format("umount {}", second_.home.string()));
  EXPECT_TRUE(has(said, "localhost: ")) << said;
  EXPECT_TRUE(has(said, " MiB are free where the run goes, and it takes ")) << said;
  EXPECT_EQ(told("line"), "none");
  EXPECT_EQ(processes("line"), "");
  EXPECT_FALSE(has(ours(first_), "/runs/line"));
}

TEST_F(SshSubmit, machines_that_do_not_share_the_folder_are_refused) {
  const std::string said = systole("submit job.yaml --on ssh --set folder=runs", 3 - 1);
  EXPECT_TRUE(has(said, "localhost: it does not see the folder of 127.0.0.1, runs/line")) << said;
  EXPECT_EQ(told("line"), "none");
}

TEST_F(SshSubmit, an_agent_that_is_killed_is_begun_again) {
  run(slow_steps(300));
  systole("submit job.yaml --on ssh");
  ASSERT_TRUE(writes("line", "step 50 ")) << output("line");
  // The leader's agent, not the script around it.
  ASSERT_EQ(run("pkill -KILL -f -- '--folder " + (folder_ / "shared/line").string() + " .*--node 127.0.0.1'").exit.code,
            0);
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  EXPECT_EQ(run("\"$SYSTOLE\" --json runs | grep -c '\"restarts\": *1'").out, "1\n") << systole("runs");
  expect_as_undisturbed("shared/line");
}

TEST_F(SshSubmit, a_machine_that_dies_is_said_and_the_run_resumes_when_it_is_back) {
  run(slow_steps(300));
  systole("submit job.yaml --on ssh --set ranks.retries=0");
  ASSERT_TRUE(writes("line", "step 50 ")) << output("line");
  kill_all(second_);
  EXPECT_TRUE(waits([&] { return has(told("line", "reason"), "localhost has lost its agent"); }))
      << told("line", "reason");
  down(second_);
  EXPECT_TRUE(waits([&] { return has(told("line", "reason"), "localhost does not answer"); }))
      << told("line", "reason");
  kill_all(first_);
  EXPECT_EQ(told("line"), "failed");
  EXPECT_TRUE(has(told("line", "reason"), "127.0.0.1 has lost its agent")) << told("line", "reason");
  down(first_);
  EXPECT_EQ(told("line"), "failed") << "as it was seen last";
  EXPECT_TRUE(has(told("line", "seen_at"), "T")) << told("line", "seen_at");
  EXPECT_TRUE(has(told("line", "reason"), "127.0.0.1 does not answer")) << told("line", "reason");
  EXPECT_NE(told("line", "node_seconds"), "0") << "what it used is known here";
  up(first_);
  up(second_);
  EXPECT_TRUE(has(systole("resume line"), "submitted again as ssh job"));
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  expect_as_undisturbed("shared/line");
}

TEST_F(SshSubmit, a_log_is_followed_through_a_cut_without_a_line_twice) {
  write("lines.yaml",
        "systole: 1\nname: lines\ncommand: [sh, -c, 'for i in $(seq 80); do echo line-$i; sleep 0.1; done']\n" +
            hosts_of_first() + fmt::format("folder: {}/shared\n", folder_.string()));
  systole("submit lines.yaml --on ssh");
  Process follows = Process::start(line("exec \"$SYSTOLE\" logs -f lines >followed 2>&1")).value();
  ASSERT_TRUE(waits([&] { return has(text_of(folder_ / "followed"), "line-5\n"); })) << text_of(folder_ / "followed");
  down(first_);
  ASSERT_TRUE(waits([&] { return has(text_of(folder_ / "followed"), "asking again]"); }))
      << text_of(folder_ / "followed");
  up(first_);
  const std::optional<Exit> ended = follows.wait(Seconds(60.0));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 0);
  std::string expected, got;
  for (int i = 1; i <= 80; ++i) expected += fmt::format("line-{}\n", i);
  std::istringstream lines(text_of(folder_ / "followed"));
  for (std::string one; std::getline(lines, one);)
    if (const std::size_t at = one.find("line-"); at != one.npos && !has(one, "$i")) got += one.substr(at) + "\n";
  EXPECT_EQ(got, expected);
}

TEST_F(SshSubmit, a_command_runs_beside_the_ranks) {
  write_endless_job();
  systole("submit job.yaml --on ssh");
  ASSERT_TRUE(writes("line", "step 100 ")) << output("line");
  EXPECT_EQ(run("\"$SYSTOLE\" exec line --node localhost -- sh -c 'echo \"$HOME it'\"'\"'s\"; pwd; exit 5'").out,
            second_.home.string() + " it's\n" + (folder_ / "shared/line").string() + "\n");
  EXPECT_EQ(run("\"$SYSTOLE\" exec line -- sh -c 'exit 5'").exit.code, 5);
  EXPECT_TRUE(has(systole("exec line --node node9 -- true", 2), "'node9' is no machine of the run 'line'"));
  EXPECT_TRUE(has(systole("logs --all line"), "\n127.0.0.1: step 100 ")) << systole("logs --all line");
  systole("stop --now --purge line");
  EXPECT_EQ(ours(first_) + ours(second_), "");
  EXPECT_EQ(processes("line"), "");
}

TEST_F(SshSubmit, a_failed_run_says_why) {
  write("bad.yaml", "systole: 1\nname: bad\ncommand: [sh, -c, echo the reason >&2; exit 7]\nranks: { retries: 0 }\n" +
                        hosts_of_first());
  systole("submit bad.yaml --on ssh");
  EXPECT_TRUE(has(systole("logs -f bad", 1), "the reason"));
  EXPECT_EQ(told("bad"), "failed");
  EXPECT_TRUE(has(told("bad", "reason"), "exit code")) << told("bad", "reason");
}

TEST_F(SshSubmit, what_is_secret_is_in_nothing_that_is_seen) {
  write_endless_job();
  systole("submit job.yaml --on ssh");
  ASSERT_TRUE(writes("line", "step 100 "));
  const std::string token = text_of(first_.home / ".systole/runs/line/127.0.0.1/token");
  EXPECT_EQ(token.size(), 32u);
  EXPECT_FALSE(has(run("ps -eo args").out, token));
  systole("stop line");
  EXPECT_EQ(run("grep -rlF " + token + " shared runs home-127.0.0.1 home-localhost").out, "");
}

}  // namespace
}  // namespace systole
