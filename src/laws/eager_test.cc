// `run --eager` looks at every value and changes no bit; the first that is no number ends the run with its name.

#include <gtest/gtest.h>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

std::vector<std::string> run(const std::string& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"run", "job.yaml", "--folder", folder, "--set", "train.steps=4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Eager, is_the_run_bit_for_bit_and_lists_the_ops_of_its_first_step) {
  const Workshop shop;
  const Captured plain = shop.systole(run("plain", {}));
  ASSERT_EQ(plain.exit.code, 0) << plain.err;
  const Captured eager = shop.systole(run("eager", {"--eager"}));
  ASSERT_EQ(eager.exit.code, 0) << eager.err;
  EXPECT_EQ(shop.state_hash("eager", 4), shop.state_hash("plain", 4));
  EXPECT_EQ(shop.unplanned_work("eager", 4), "");
  EXPECT_NE(eager.out.find("step 1, forward of microbatch 1, layer 1: contract -> "), std::string::npos) << eager.out;
  EXPECT_NE(eager.out.find("step 1, update of microbatch 0: "), std::string::npos) << eager.out;
  EXPECT_EQ(eager.out.find("step 2, "), std::string::npos) << "the first step alone is listed";
  const Captured resumed = shop.systole({"resume", "plain", "--eager", "--set", "train.steps=6"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("step 5, forward of microbatch 0"), std::string::npos) << resumed.out;
}

constexpr const char* kDiverges = R"(systole: 1
name: wild
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 16 }
train:
  batch: 8
  steps: 40
  optimizer: { kind: sgd, rate: 1e6, clip: 0 }
  divergence: { factor: 0, skips: 3 }
)";

TEST(Eager, names_the_first_value_that_is_no_number) {
  const Workshop shop;
  shop.write("job.yaml", kDiverges);
  std::vector<std::string> backends = {"reference"};
#ifdef SYSTOLE_HAS_CPU
  backends.push_back("cpu");
#endif
  for (const std::string& backend : backends) {
    Command command = shop.command({"plan"});
    command.argv = {command.argv[0], "run", "job.yaml", "--backend", backend, "--folder", backend};
    const Captured plain = run_captured(command).value();
    EXPECT_EQ(plain.exit.code, 1) << plain.err;
    EXPECT_NE(plain.err.find("was skipped: its gradient is not finite"), std::string::npos) << plain.err;
    EXPECT_NE(plain.err.find("hint: systole run or resume with --eager"), std::string::npos) << plain.err;
    EXPECT_NE(plain.out.find("--eager"), std::string::npos) << plain.out;
    command.argv.back() = backend + "-eager";
    command.argv.emplace_back("--eager");
    const Captured eager = run_captured(command).value();
    EXPECT_EQ(eager.exit.code, 1) << eager.err;
    const std::size_t told = eager.err.find("error: step ");
    ASSERT_NE(told, std::string::npos) << eager.err;
    for (const char* part : {" of microbatch 0", " makes inf of '", " elements are not numbers\n  from\n    ", " .. ",
                             "hint: the first value of the run that is no number"})
      EXPECT_NE(eager.err.find(part, told), std::string::npos) << part << "\n" << eager.err;
  }
}

}  // namespace
}  // namespace systole::laws
