// fit-is-proved, measured: what the kernel says is resident at the end of a run is at most what was planned, and at
// least 90% of it.

#include <gtest/gtest.h>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

void expect_within(const std::string& what, const Workshop& shop, const std::string& run) {
  const auto measured = last_of<MemoryMeasured>(shop.events(run));
  Bytes planned;
  std::string owners;
  for (const auto& [owner, bytes] : measured.by_owner) {
    planned += bytes;
    owners += fmt::format(" {} {}", owner, with_commas(bytes.count()));
  }
  note(fmt::format("{}: {} resident, {} planned: {:.1f}% ({})", what, with_commas(measured.resident.count()),
                   with_commas(planned.count()),
                   100.0 * static_cast<double>(measured.resident.count()) / static_cast<double>(planned.count()),
                   owners));
  EXPECT_LE(measured.resident, planned);
  EXPECT_GE(static_cast<double>(measured.resident.count()), 0.9 * static_cast<double>(planned.count()));
}

// The quickstart's model, a hundred times shorter.
TEST(FitMeasured, resident_memory_is_what_was_planned) {
  if (is_sanitized()) GTEST_SKIP() << "measures memory: runs in the release build";
  const Workshop shop;
  for (const char* precision : {"bf16", "f32"}) {
    std::vector<std::string> words = {"run",     "job.yaml", "--folder",
                                      precision, "--set",    std::string("train.precision=") + precision};
    for (const char* set : {"model.layers=3", "model.width=128", "model.heads=4", "model.context=256",
                            "model.vocabulary=2048", "train.batch=16", "train.microbatches=1", "train.steps=12",
                            "checkpoint.every=4", "train.evaluate.every=6", "train.evaluate.batches=2"}) {
      words.insert(words.end(), {"--set", set});
    }
    const Captured done = shop.systole(words);
    ASSERT_EQ(done.exit.code, 0) << done.err;
    expect_within(precision, shop, precision);
  }
}

}  // namespace
}  // namespace systole::laws
