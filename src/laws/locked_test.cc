// `run --locked`: the same lock gives the same result hash, and any difference is refused by name before anything is
// started.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

std::string result_of(const Captured& run) {
  const std::size_t at = run.out.find("result ");
  return at == run.out.npos ? "none: " + run.out + run.err : run.out.substr(at + 7, 32);
}

class Locked : public ::testing::Test {
 protected:
  Captured run(const std::string& folder, std::vector<std::string> more = {"--locked"}) {
    std::vector<std::string> words = {"run", "job.yaml", "--folder", folder, "--set", "train.steps=4"};
    words.insert(words.end(), more.begin(), more.end());
    return shop_.systole(words);
  }
  void lock() {
    Command command = shop_.command({"run"});  // for its backend
    command.argv[1] = "lock";
    command.argv.insert(command.argv.begin() + 2, {"job.yaml", "--set", "train.steps=4"});
    const Captured made = run_captured(command).value();
    ASSERT_TRUE(made.exit.ok()) << to_string(made.exit) << made.err;
  }
  void expect_refused(const Captured& refused, const std::string& why, const std::string& hint) {
    EXPECT_EQ(refused.exit.code, 2) << refused.out;
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(hint), std::string::npos) << refused.err;
  }
  const Workshop shop_;
};

TEST_F(Locked, the_same_lock_gives_the_same_result) {
  lock();
  const Captured first = run("first"), second = run("second");
  ASSERT_EQ(first.exit.code, 0) << first.err;
  EXPECT_EQ(result_of(first), shop_.state_hash("first", 4));
  EXPECT_EQ(result_of(second), result_of(first));
  EXPECT_EQ(result_of(run("third", {"--lock", "first/lock.json"})), result_of(first));
  EXPECT_EQ(run("free", {}).out.find("result "), std::string::npos);
}

TEST_F(Locked, what_differs_is_named_and_nothing_is_started) {
  expect_refused(run("a"), "there is no lock 'job.lock'", "systole lock WORKLOAD");
  lock();
  expect_refused(run("b", {"--locked", "--set", "train.seed=7"}),
                 "--locked: workload.train.seed is '7', the lock has '0'", "systole lock");
  shop_.write("timed.yaml",
              "systole: 1\nname: timed\nmodel: { family: mlp, inputs: 4, outputs: 2 }\ndata: { kind: linear, rows: 64, "
              "held_out_rows: 16 }\ntrain: { batch: 8, time: 1s, optimizer: { kind: sgd, rate: 0.1 } }\n");
  Command timed = shop_.command({"run"});
  timed.argv.insert(timed.argv.begin() + 2, {"timed.yaml", "--folder", "c", "--locked"});
  expect_refused(run_captured(timed).value(), "--locked: train.time ends a run where the clock says", "train.steps=N");
  std::ofstream(shop_.path("text.txt"), std::ios::app) << "one more line.\n";
  expect_refused(run("d"), "--locked: data is '", "put the files of text back");
  for (const char* folder : {"a", "b", "c", "d"}) EXPECT_FALSE(std::filesystem::exists(shop_.path(folder))) << folder;
}

TEST_F(Locked, a_lock_of_another_program_machine_or_version) {
  lock();
  std::ifstream file(shop_.path("job.lock"));
  const std::string lock(std::istreambuf_iterator<char>(file), {});
  const auto with = [&](const std::string& key, const std::string& value) {
    const std::size_t at = lock.find("\"" + key + "\": ") + key.size() + 4, end = lock.find_first_of(",\n}", at);
    shop_.write("job.lock", lock.substr(0, at) + value + lock.substr(end));
    return run("run");
  };
  expect_refused(with("hash", "\"0123\""), "--locked: systole.hash is '", "the program that the lock was made with");
  expect_refused(with("libraries", "\"oneDNN 9.9.9 abacus\""), "the lock has 'oneDNN 9.9.9 abacus'",
                 "a machine like the one");
  EXPECT_EQ(with("systole_lock", "2").exit.code, 3);
  shop_.write("job.lock", "{}");
  expect_refused(run("run"), "'job.lock' is no lock", "systole lock WORKLOAD");
}

}  // namespace
}  // namespace systole::laws
