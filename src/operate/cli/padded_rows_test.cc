// Batches that microbatches do not divide, and held-out rows that batches do not divide: empty rows count in nothing.
// And the same numbers in f64.

#include <gtest/gtest.h>

#include <sstream>

#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kJob = R"(systole: 1
name: line
model: { family: mlp, inputs: 4, outputs: 2, hidden: [6] }
data: { kind: linear, rows: 64, held_out_rows: 7 }
train:
  batch: 5
  steps: 6
  optimizer: { kind: sgd, rate: 0.1 }
)";

// The losses and norms of f32 sums of fewer than a hundred numbers, in another order.
constexpr double kOtherOrder = 100 * 0x1p-23;

class PaddedRows : public testing::Test {
 protected:
  void SetUp() override { systole_.write("job.yaml", kJob); }
  struct Numbers {
    std::vector<double> losses, norms;
    double held_out = 0;
  };
  Numbers numbers(const std::string& folder, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run", "job.yaml", "--folder", folder, "--backend", "reference"};
    words.insert(words.end(), more.begin(), more.end());
    const Captured done = systole_.run(words);
    EXPECT_EQ(done.exit.code, 0) << done.err;
    Numbers found;
    if (done.exit.code != 0) return found;
    std::istringstream lines(read_text_file((systole_.folder() / folder / "events" / "000.jsonl").string()).value());
    for (std::string line; std::getline(lines, line);) {
      const Node event = parse_json(line, "event").value();
      const std::string name = event.find("event")->text();
      if (name != "step_ended" && name != "evaluated") continue;
      const double loss = event.find("loss")->as_double().value();
      if (name == "evaluated") {
        EXPECT_EQ(event.find("labels")->as_int(0).value(), 7);
        found.held_out = loss;
      } else {
        found.losses.push_back(loss);
        found.norms.push_back(event.find("gradient_norm")->as_double().value());
      }
    }
    EXPECT_EQ(found.losses.size(), 6u);
    EXPECT_GT(found.held_out, 0) << "it was evaluated";
    return found;
  }
  static void expect_same(const Numbers& got, const Numbers& want) {
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (std::size_t i = 0; i < want.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], want.losses[i], kOtherOrder * std::max(1.0, want.losses[i])) << "step " << i + 1;
      EXPECT_NEAR(got.norms[i], want.norms[i], kOtherOrder * std::max(1.0, want.norms[i])) << "step " << i + 1;
    }
    EXPECT_NEAR(got.held_out, want.held_out, kOtherOrder * std::max(1.0, want.held_out));
  }
  SystoleRunner systole_;
};

TEST_F(PaddedRows, of_microbatches_devices_and_shards_count_in_nothing) {
  const Numbers whole = numbers("whole", {});
  expect_same(numbers("microbatches", {"--set", "train.microbatches=2"}), whole);
  expect_same(numbers("devices", {"--set", "mesh={data: 2}", "--ranks", "2"}), whole);
  expect_same(numbers("exact", {"--set", "train.exact=true"}), whole);
}

TEST_F(PaddedRows, of_an_evaluation_count_in_nothing) {
  // An evaluation takes the rows of a microbatch: all seven at once, four and three, or three, three and one.
  const Numbers whole = numbers("seven", {"--set", "train.batch=7"});
  for (const char* microbatches : {"2", "3"}) {
    SCOPED_TRACE(microbatches);
    const std::string set = std::string("train.microbatches=") + microbatches;
    expect_same(numbers(set, {"--set", "train.batch=7", "--set", set}), whole);
  }
}

TEST_F(PaddedRows, are_masked_only_where_there_may_be_some) {
  const auto masked = [&](const std::string& train, const std::string& held_out) {
    const Captured shown = systole_.run(
        {"show", "program", "job.yaml", "--all", "--set", train, "--set", "data.held_out_rows=" + held_out});
    EXPECT_EQ(shown.exit.code, 0) << shown.err;
    const auto has = [&](const char* value) { return shown.out.find(value) != std::string::npos; };
    return std::pair(has("value filled "), has("value evaluate/filled "));
  };
  EXPECT_EQ(masked("train.batch=4", "8"), std::pair(false, false));
  EXPECT_EQ(masked("train.batch=4", "7"), std::pair(false, true));
  EXPECT_EQ(masked("train.microbatches=2", "9"), std::pair(true, false));
  EXPECT_EQ(masked("train.microbatches=2", "7"), std::pair(true, true));
}

// Rounding to f32 changes each of fewer than a thousand operations by 2^-24; rows read wrongly change all numbers.
TEST_F(PaddedRows, and_full_ones_give_the_same_numbers_in_f64) {
  const Numbers narrow = numbers("f32", {}), wide = numbers("f64", {"--set", "train.precision=f64"});
  ASSERT_EQ(wide.losses.size(), narrow.losses.size());
  for (std::size_t i = 0; i < wide.losses.size(); ++i)
    EXPECT_NEAR(wide.losses[i], narrow.losses[i], 1000 * 0x1p-24) << "step " << i + 1;
  EXPECT_NEAR(wide.held_out, narrow.held_out, 1000 * 0x1p-24);
}

}  // namespace
}  // namespace systole::cli
