#pragma once
// Lint of a workload: legal settings that run, but are probably mistakes. Errors belong to the spec; these are
// warnings. Rules use only the workload, not the machine or the files.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

struct Lint {
  std::string rule;  // "no_held_out": stable, for scripts
  std::string key;   // "train.optimizer.decay"
  std::string text, hint;
};

// A batch size that is not divisible by its parts (microbatches, logical shards, devices that shard it). All parts have
// the same shape, so missing rows are padded. The numbers are right; time and memory are those of a larger batch.
std::optional<Lint> empty_rows(const Workload& workload);

// What is known of the training rows once the data are built.
struct MeasuredRows {
  double padding = 0;                          // the share of an epoch's positions
  std::int64_t most = 0, most_of_targets = 0;  // of pairs: tokens that 99% of the inputs and targets do not exceed
};
// Texts of many lengths, each in a row of its own, on a device for which every row has the same shape: it computes the
// padding too. `static_shapes`: such a device, whatever the workload's resources say.
bool pads_rows(const Workload& workload, bool static_shapes = false);
// The warning of that; nothing where !pads_rows. `measured` makes it nothing if little is padding, and is needed where
// rows have buckets: without it nothing is said of them.
std::optional<Lint> padded_rows(const Workload& workload, bool static_shapes = false,
                                const std::optional<MeasuredRows>& measured = std::nullopt);

// In the order of the rules; empty: no warnings. Without padded_rows, which who knows more than the workload asks.
std::vector<Lint> lint(const Workload& workload);

}  // namespace systole
