// `run --eager` examines every value and changes no bit; the first NaN or infinity ends the run with the value's name.

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

// A run that ends with non-finite weights has diverged, even if too few steps were skipped to stop it.
TEST(Diverged, is_how_a_run_ends_whose_weights_are_no_numbers) {
  const Workshop shop;
  shop.write("job.yaml", kDiverges);
  const auto run = [&shop](const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> words = {"run",      "job.yaml", "--folder", folder,
                                      "--inject", "nan=39",   "--set",    "train.optimizer.rate=0.01"};
    words.insert(words.end(), more.begin(), more.end());
    return shop.systole(words);
  };
  const Captured held_out = run("held-out", {}), none = run("none", {"--set", "data.held_out_rows=0"});
  for (const auto& [ran, what] : {std::pair(&held_out, "held-out loss"), std::pair(&none, "loss of the last step")}) {
    EXPECT_EQ(ran->exit.code, 1) << ran->err;
    EXPECT_NE(ran->out.find(fmt::format("diverged at step 40: the {} is not a number", what)), std::string::npos)
        << ran->out;
    EXPECT_NE(ran->out.find("from an earlier checkpoint; try\n  1. "), std::string::npos) << ran->out;
    EXPECT_EQ(ran->out.find("bits per byte"), std::string::npos) << ran->out;
  }
  EXPECT_EQ(last_of<Stopped>(shop.events("held-out")).reason, "diverged");
  EXPECT_TRUE(last_of<Stopped>(shop.events("held-out")).saved) << "to be looked at";
  const Captured early = run("early", {"--set", "train.evaluate.every=39"});
  EXPECT_EQ(early.exit.code, 1) << early.err;
  EXPECT_NE(early.out.find("diverged at step 39: the held-out loss"), std::string::npos) << early.out;
  const Captured ignored = run("ignored", {"--set", "train.divergence.policy=ignore"});
  EXPECT_EQ(ignored.exit.code, 0) << ignored.err;
  EXPECT_NE(ignored.err.find("the held-out loss is no number"), std::string::npos) << ignored.err;
}

}  // namespace
}  // namespace systole::laws
