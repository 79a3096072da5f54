// The law: the errors that plans print equal those of a backtest of the bundled rows.

#include "predict/backtest/error_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "predict/backtest/fit.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

std::vector<PublishedRow> bundled(const char* table) {
  const std::string file = std::string(SYSTOLE_SOURCE_DIR) + "/data/validation/" + table;
  return read_published(read_text_file(file).value(), file).value();
}

constexpr const char* kStale =
    "run: systole backtest data/validation/training.csv data/validation/sweeps.csv --page docs/accuracy.md "
    "--save-errors data/perf/known_errors.csv";

TEST(KnownErrorsFile, source_left_out_and_stack_unseen_are_kinds_of_their_own) {
  const Cells small{{"n_layers", "4"}, {"d_model", "256"}, {"n_heads", "4"},   {"n_kv_heads", "4"},
                    {"d_ff", "512"},   {"vocab", "1024"},  {"seq_len", "128"}, {"step_time_use_s", "0.5"}};
  const auto row = [&](const char* id, Cells others) {
    others.merge(Cells(small));
    others["id"] = id;
    return row_with(others);
  };
  const std::vector<PreparedRow> rows =
      prepare({row("a", {{"peak_mem_gib", "4"}}), row("b", {{"step_time_use_s", "1"}}),
               row("flagged", {{"quality_flag", "approximate"}}), row("refused", {{"notes", "hybrid Mamba"}})},
              builtin_stacks(), builtin_catalog(), {.threads = 1});
  StackProfile slow = *rows[0].stack, slower = slow;
  slow.step = 1;
  slower.step = 3;
  const Scores fitted = score(rows);
  const Scores left_out = score(rows, [&](const PreparedRow&) -> const StackProfile& { return slow; });
  const Scores unseen = score(rows, [&](const PreparedRow&) -> const StackProfile& { return slower; });
  const std::vector<KnownError> errors = known_errors(fitted, {&left_out, &unseen});
  const auto mean = [](const Scores& scores) {
    return (std::abs(*scores.rows[0].time_error) + std::abs(*scores.rows[1].time_error)) / 2;
  };
  for (const char* on : {"h100", "any"}) {
    const KnownError* own = find_known_error(errors, rows[0].stack->name, "dense", on, "step_time");
    EXPECT_EQ(own, nullptr) << "two rows are too few to be told";
    std::size_t seen = 0;
    for (const KnownError& e : errors) {
      if (e.accelerator != on || e.of != "step_time") continue;
      ++seen;
      EXPECT_EQ(e.rows, 2) << "flagged and refused rows do not count";
      EXPECT_NEAR(e.mean, mean(e.stack == kUnseenStack ? unseen : left_out), 1e-4);
      EXPECT_EQ(e.fitted_mean.has_value(), e.stack != kUnseenStack);
      if (e.fitted_mean) { EXPECT_NEAR(*e.fitted_mean, mean(fitted), 1e-4); }
    }
    EXPECT_EQ(seen, 2u);
  }
}

// Three accelerators with few rows: the errors of their own profiles, which need no fit.
TEST(KnownErrorsFile, of_few_rows_the_file_says_what_a_backtest_says) {
  std::vector<PublishedRow> few;
  for (PublishedRow& row : bundled("training.csv"))
    if (row.accelerator.find("v4") != row.accelerator.npos || row.accelerator.find("V100") != row.accelerator.npos)
      few.push_back(std::move(row));
  const std::vector<PreparedRow> rows = prepare(std::move(few), builtin_stacks(), builtin_catalog(), {.threads = 2});
  const Scores scores = score(rows);
  std::size_t compared = 0;
  for (const KnownError& now : known_errors(scores, {&scores, &scores})) {
    if (now.accelerator == kAnyAccelerator || now.stack == kUnseenStack) continue;
    const auto told = std::ranges::find_if(builtin_known_errors(), [&](const KnownError& e) {
      return e.stack == now.stack && e.work == now.work && e.accelerator == now.accelerator && e.of == now.of;
    });
    ASSERT_NE(told, builtin_known_errors().end()) << now.stack << " on " << now.accelerator << "; " << kStale;
    EXPECT_EQ(told->rows, now.rows) << now.stack << " on " << now.accelerator << "; " << kStale;
    EXPECT_NEAR(*told->fitted_mean, *now.fitted_mean, 1.01e-4)
        << now.stack << " on " << now.accelerator << "; " << kStale;
    ++compared;
  }
  EXPECT_GE(compared, 2u);
}

TEST(KnownErrorsLong, of_all_rows_the_file_is_what_a_backtest_writes) {
  if (std::getenv("SYSTOLE_TEST_LONG") == nullptr) GTEST_SKIP() << "a minute: SYSTOLE_TEST_LONG=1";
  std::vector<PublishedRow> all = bundled("training.csv");
  for (PublishedRow& row : bundled("sweeps.csv")) all.push_back(std::move(row));
  const std::vector<PreparedRow> rows = prepare(std::move(all), builtin_stacks(), builtin_catalog(), {.threads = 2});
  const SourcesLeftOut left_out(rows, builtin_stacks());
  const StacksUnseen unseen(builtin_stacks());
  const Scores fitted = score(rows), apart = score(rows, std::cref(left_out)), never = score(rows, std::cref(unseen));
  EXPECT_EQ(to_csv(known_errors(fitted, {&apart, &never})), to_csv(builtin_known_errors())) << kStale;
}

}  // namespace
}  // namespace systole::backtest
