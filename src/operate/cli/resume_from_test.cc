// resume.from: runs that begin from another run's checkpoint, the ways to name it, and what is refused before anything
// starts.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 8, hidden: [], outputs: 2, loss: squared_error }\n"
    "data: { kind: linear, rows: 64, held_out_rows: 0, noise: 0.1 }\n"
    "train:\n  batch: 8\n  steps: 20\n  optimizer: { kind: sgd, rate: 0.01, momentum: 0.9 }\n"
    "checkpoint: { every: 5, keep: 10 }\n";
constexpr const char* kKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  CHECK(at != text.npos, "'{}' is not there", what);
  return text.replace(at, what.size(), with);
}

class ResumeFrom : public testing::Test {
 protected:
  void SetUp() override {
    systole_.write("job.yaml", kJob);
    const Captured whole = systole_.run({"run", "job.yaml"});
    ASSERT_EQ(whole.exit.code, 0) << whole.err;
  }
  Captured from(const std::string& place, std::vector<std::string> more = {}, const char* job = "job.yaml") const {
    more.insert(more.begin(), {"run", job, "--set", "resume.from=" + place});
    return systole_.run(more);
  }
  void expect_same(const std::string& run) const {
    const Captured same = systole_.run({"ckpt", "diff", run, "runs/line-1"});
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }
  // By every command that examines a run before its start; nothing is left of it.
  void expect_refused(const std::string& place, const std::string& message, const std::string& at,
                      const char* job = "job.yaml") const {
    const std::vector<std::vector<std::string>> commands = {
        {"check", job}, {"plan", job}, {"run", job, "--dry-run"}, {"run", job}};
    for (std::vector<std::string> command : commands) {
      command.insert(command.end(), {"--set", "resume.from=" + place});
      const Captured refused = systole_.run(command);
      EXPECT_EQ(refused.exit.code, 2) << command[0] << ": " << refused.out << refused.err;
      EXPECT_TRUE(has(refused.err, message)) << command[0] << ": " << refused.err;
      EXPECT_TRUE(has(refused.err, at)) << command[0] << ": " << refused.err;
      EXPECT_TRUE(has(refused.err, "hint: ")) << command[0] << ": " << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "runs/line-2"));
  }
  SystoleRunner systole_;
};

TEST_F(ResumeFrom, begins_at_its_step_and_ends_in_the_same_bits) {
  const Captured done = from("line-1@10", {"--folder", "b"});
  ASSERT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(done.err, "begins from '" + (systole_.folder() / "runs/line-1@10").string() + "' (resume.from)\n"))
      << done.err;
  EXPECT_TRUE(has(done.out, "finished at step 20")) << done.out;
  expect_same("b");
  const Captured kept = systole_.shell("ls b/checkpoints/manifests; grep -A1 '^resume:' b/workload.yaml");
  EXPECT_FALSE(has(kept.out, "000000000010.json")) << "the other run's checkpoint stays there: " << kept.out;
  EXPECT_TRUE(has(kept.out, "000000000015.json")) << kept.out;
  EXPECT_TRUE(has(kept.out, "runs/line-1@10")) << kept.out;
  const Captured longer = from("line-1", {"--folder", "longer", "--set", "train.steps=30"});
  EXPECT_EQ(longer.exit.code, 0) << longer.err;
  EXPECT_TRUE(has(longer.out, "finished at step 30")) << longer.out;
}

TEST_F(ResumeFrom, is_named_as_everywhere) {
  ASSERT_EQ(systole_.run({"ckpt", "bless", "line-1@5"}).exit.code, 0);
  const std::string all = systole_.folder().string();
  const std::vector<std::pair<std::string, int>> names = {{"line-1@10", 10},
                                                          {"runs/line-1@10", 10},
                                                          {all + "/runs/line-1@10", 10},
                                                          {"1@15", 15},
                                                          {"line-1", 20},
                                                          {"line-1@latest", 20},
                                                          {"latest", 20},
                                                          {"blessed", 5},
                                                          {"line-1@blessed", 5},
                                                          {"runs/line-1/checkpoints@10", 10}};
  for (const auto& [name, step] : names) {
    const Captured planned = from(name, {"--dry-run", "--set", "train.steps=30"});
    EXPECT_EQ(planned.exit.code, 0) << name << ": " << planned.err;
    EXPECT_TRUE(has(planned.err, fmt::format("{}/runs/line-1@{}' (resume.from)", all, step))) << name << planned.err;
  }
  // A bare checkpoint folder, as copied to another machine.
  ASSERT_EQ(systole_.shell("cp -r runs/line-1/checkpoints copied").exit.code, 0);
  ASSERT_EQ(from("copied@10", {"--folder", "b"}).exit.code, 0);
  expect_same("b");
}

TEST_F(ResumeFrom, of_another_kind_is_refused_before_anything_starts) {
  systole_.write("other.yaml", replaced(kJob, "batch: 8", "batch: 4"));
  expect_refused("line-1@10",
                 "train.batch is 4, and 'runs/line-1', from which the run is to begin (resume.from), has 8",
                 "other.yaml:6:", "other.yaml");
  systole_.write("other.yaml", replaced(replaced(kJob, "kind: sgd", "kind: adamw"), ", momentum: 0.9", ""));
  expect_refused("line-1@10", "train.optimizer.kind is adamw", "other.yaml:8:", "other.yaml");
  EXPECT_FALSE(has(from("line-1@10", {}, "other.yaml").err, "train.optimizer.beta1")) << "it comes of the kind";
  systole_.write("other.yaml", replaced(kJob, "inputs: 8", "inputs: 4"));
  expect_refused("line-1@10", "model.inputs is 4", "other.yaml:3:", "other.yaml");
  systole_.write("other.yaml", replaced(kJob, "noise: 0.1", "noise: 0.2"));
  expect_refused("line-1@10", "data.noise is 0.2", "other.yaml:4:", "other.yaml");
  systole_.write("other.yaml", replaced(kJob, "steps: 20", "steps: 10"));
  expect_refused("line-1@10", "train.steps: 10 steps are done in ", "other.yaml:7:", "other.yaml");
  // A bare folder does not tell which key is needed.
  ASSERT_EQ(systole_.shell("cp -r runs/line-1/checkpoints copied").exit.code, 0);
  systole_.write("other.yaml", replaced(kJob, "batch: 8", "batch: 4"));
  expect_refused("copied@10", "is of a run with other numbers (model, data or train)", "--set resume.from=copied@10",
                 "other.yaml");
}

TEST_F(ResumeFrom, what_is_not_there_is_refused_with_what_is) {
  systole_.write("named.yaml", std::string(kJob) + "resume: { from: nowhere }\n");
  const Captured nowhere = systole_.run({"run", "named.yaml"});
  EXPECT_EQ(nowhere.exit.code, 2) << nowhere.err;
  EXPECT_TRUE(has(nowhere.err, "named.yaml:10:")) << nowhere.err;
  EXPECT_TRUE(has(nowhere.err, "resume.from: there is no run 'nowhere'")) << nowhere.err;
  expect_refused("line-1@7", "there is no checkpoint of step 7", "there are: 5, 10, 15, 20");
  expect_refused("line-1@soon", "'line-1@soon' names no step after the @", "line-1@500");
  expect_refused("blessed", "no run in 'runs' has a blessed checkpoint", "systole ckpt bless");
  expect_refused("line-1@blessed", "is blessed", "systole ckpt bless runs/line-1@STEP");
}

TEST_F(ResumeFrom, a_kill_before_the_first_checkpoint_begins_there_again) {
  const Captured killed =
      from("line-1@10", {"--folder", "b", "--set", "checkpoint.every=1000", "--inject", "kill=compute@3"});
  ASSERT_NE(killed.exit.signal, 0) << killed.err;
  const Captured planned = systole_.run({"resume", "b", "--dry-run"});
  EXPECT_EQ(planned.exit.code, 0) << planned.err;
  // The run keeps its origin as it was at the start.
  const Captured other = systole_.run({"resume", "b", "--set", "resume.from=line-1@5"});
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_TRUE(has(other.err, "resume.from is line-1@5, and the run 'b' began from '")) << other.err;
  ASSERT_EQ(systole_.shell("mv runs/line-1 runs/away-1").exit.code, 0);
  const Captured gone = systole_.run({"resume", "b"});
  EXPECT_NE(gone.exit.code, 0) << "it does not begin from nothing: " << gone.out;
  EXPECT_TRUE(has(gone.err, "resume.from: there is no run '")) << gone.err;
  ASSERT_EQ(systole_.shell("mv runs/away-1 runs/line-1").exit.code, 0);
  const Captured done = systole_.run({"resume", "b"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(done.err, "it goes on from the checkpoint of step 10")) << done.err;
  expect_same("b");
}

TEST_F(ResumeFrom, latest_means_what_it_meant_when_the_run_began) {
  const std::vector<std::string> words = {
      "run", "job.yaml", "--folder", "b", "--or-resume", "--set", "resume.from=latest", "--set", "train.steps=30"};
  std::vector<std::string> killed = words;
  killed.insert(killed.end(), {"--inject", "kill=compute@3"});
  ASSERT_NE(systole_.run(killed).exit.signal, 0);
  ASSERT_EQ(systole_.run({"run", "job.yaml", "--set", "train.steps=6"}).exit.code, 0) << "a newer run";
  const Captured done = systole_.run(words);
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(systole_.shell("cat b/workload.yaml").out, "runs/line-1@20")) << done.err;
  std::vector<std::string> other = words;
  other[6] = "resume.from=line-2";
  const Captured refused = systole_.run(other);
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_TRUE(has(refused.err, "and the run 'b' began from '")) << refused.err;
}

TEST_F(ResumeFrom, latest_does_not_pass_over_a_run_that_cannot_be_read) {
  ASSERT_EQ(systole_.run({"run", "job.yaml"}).exit.code, 0) << "a newer run";
  const std::vector<std::string> words = {"run",   "job.yaml",      "--dry-run", "--set", "resume.from=latest",
                                          "--set", "train.steps=30"};
  const std::string newest = systole_.folder() / "runs/line-2";
  const std::string meant = "name the run that is wanted: --set resume.from=NAME\n";
  for (const char* file : {"", "/workload.yaml"}) {
    std::filesystem::permissions(newest + file, std::filesystem::perms::none);
    const Captured closed = systole_.run_as_user(words);
    std::filesystem::permissions(newest + file, std::filesystem::perms::owner_all);
    EXPECT_EQ(closed.exit.code, 1) << closed.out << closed.err;
    EXPECT_TRUE(has(closed.err, "error: resume.from: ")) << closed.err;
    EXPECT_TRUE(has(closed.err, "runs/line-2")) << closed.err;
    EXPECT_TRUE(has(closed.err, "'; or " + meant)) << closed.err;
  }
  systole_.write("runs/line-2/workload.yaml", "systole: 1\nmodel: [");
  const Captured damaged = systole_.run(words);
  EXPECT_EQ(damaged.exit.code, 2) << damaged.out << damaged.err;
  EXPECT_TRUE(has(damaged.err, "resume.from: runs/line-2/workload.yaml:2:8: ")) << damaged.err;
  EXPECT_TRUE(has(damaged.err, meant)) << damaged.err;
  // A run that ended before it began has no checkpoint.
  std::filesystem::remove(newest + "/workload.yaml");
  const Captured older = systole_.run(words);
  EXPECT_EQ(older.exit.code, 0) << older.err;
  EXPECT_TRUE(has(older.err, "runs/line-1@20' (resume.from)\n")) << older.err;
}

TEST_F(ResumeFrom, a_damaged_newest_is_passed_over_and_a_named_one_is_not) {
  ASSERT_EQ(systole_.shell("echo x >> runs/line-1/checkpoints/manifests/000000000020.json").exit.code, 0);
  const Captured older = from("line-1", {"--folder", "b"});
  EXPECT_EQ(older.exit.code, 0) << older.err;
  EXPECT_TRUE(has(older.err, "resume.from: the checkpoint of step 20 was passed over")) << older.err;
  EXPECT_TRUE(has(older.err, "runs/line-1@15' (resume.from)")) << older.err;
  const Captured named = from("line-1@20", {"--folder", "c", "--set", "train.steps=30"});
  EXPECT_NE(named.exit.code, 0) << named.out;
  EXPECT_TRUE(has(named.err, "resume.from: ")) << named.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "c"));
}

TEST_F(ResumeFrom, a_damaged_newest_of_the_run_itself_is_named_where_it_is) {
  const Captured made = systole_.shell(
      "\"$SYSTOLE\" run job.yaml --folder b --set checkpoint.folder=\"$PWD/disk\" && "
      "echo x >> disk/manifests/000000000020.json");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const Captured resumed = systole_.run({"resume", "b"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "disk/manifests/000000000020.json")) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "warning: the checkpoint of step 20 was passed over: ")) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "`systole ckpt verify b` tells of all of them")) << resumed.err;
}

TEST_F(ResumeFrom, its_checkpoints_may_be_elsewhere_and_encrypted) {
  const std::string key = fmt::format("export KEY={}; ", kKey);
  const Captured made =
      systole_.shell(key +
                     "\"$SYSTOLE\" run job.yaml --folder secret --set checkpoint.folder=\"$PWD/disk\" "
                     "--set checkpoint.encryption_key=env:KEY");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const Captured done = systole_.shell(
      key + "\"$SYSTOLE\" run job.yaml --folder b --set resume.from=secret@10 --set checkpoint.encryption_key=env:KEY");
  ASSERT_EQ(done.exit.code, 0) << done.err;
  const Captured same = systole_.shell(key + "\"$SYSTOLE\" ckpt diff b runs/line-1");
  EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  const Captured open =
      systole_.shell(key + "\"$SYSTOLE\" run job.yaml --folder open --set resume.from=\"$PWD/secret@10\"");
  EXPECT_EQ(open.exit.code, 0) << open.err;
  EXPECT_TRUE(has(open.err, "is encrypted, and the checkpoints of this run will not be")) << open.err;
  const Captured without = from("secret@10");
  EXPECT_NE(without.exit.code, 0);
  EXPECT_TRUE(has(without.err, "the key env:KEY is not there")) << without.err;
  // A bare folder is read with the keys of the run that begins.
  const Captured alone = systole_.shell(
      key + "\"$SYSTOLE\" run job.yaml --folder c --set resume.from=disk@10 --set checkpoint.encryption_key=env:KEY");
  EXPECT_EQ(alone.exit.code, 0) << alone.err;
}

TEST_F(ResumeFrom, a_lock_holds_to_the_checkpoint) {
  const std::vector<std::string> set = {"--set", "resume.from=line-1@10"};
  std::vector<std::string> lock = {"lock", "job.yaml"}, run = {"run", "job.yaml", "--locked", "--folder", "b"};
  lock.insert(lock.end(), set.begin(), set.end());
  run.insert(run.end(), set.begin(), set.end());
  ASSERT_EQ(systole_.run(lock).exit.code, 0);
  const Captured same = systole_.run(run);
  EXPECT_EQ(same.exit.code, 0) << same.err;
  run[4] = "c";
  run.back() = "resume.from=line-1@15";
  const Captured other = systole_.run(run);
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_TRUE(has(other.err, "--locked: resume_from.step is '15', the lock has '10'")) << other.err;
}

TEST_F(ResumeFrom, of_a_plan_is_what_it_was_when_it_was_planned) {
  ASSERT_EQ(systole_.run({"plan", "job.yaml", "--set", "resume.from=line-1@10", "--out", "plan.json"}).exit.code, 0);
  const Captured done = systole_.run({"run", "--plan", "plan.json", "--folder", "b"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  expect_same("b");
}

TEST(ResumeFromPrograms, have_it_in_their_environment) {
  const SystoleRunner systole;
  systole.write(
      "own.yaml",
      "systole: 1\nname: own\ncommand: [sh, -c, \"echo from $SYSTOLE_RESUME_FROM\"]\nresume: { from: /a/b }\n");
  const Captured done = systole.run({"run", "own.yaml", "--ranks", "2"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(done.err, "[rank 1] from /a/b\n")) << done.err;
}

}  // namespace
}  // namespace systole::cli
