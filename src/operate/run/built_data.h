#pragma once
// The dataset of a workload's text, if it is built; and what can be known of its rows without reading the text.

#include <memory>
#include <optional>
#include <string>

#include "describe/lengths/bucket_edges.h"
#include "execute/data/lengths.h"
#include "operate/check/lint.h"
#include "operate/run/run_data.h"

namespace systole {

struct BuiltData {
  std::unique_ptr<Store> folder;
  TokensManifest manifest;
};
// Reads the text's bytes, for its key. Errors: not_found, and those of the files' checks.
Result<BuiltData> find_built_data(const Workload& workload, const WorkloadSource& source);

// The same without reading the text: a dataset in the workload's folder that was built of exactly these files, by their
// names and sizes, for the same kind of model; of several, one with the table of the workload's rows, if there is any.
// Nothing: there is none, or it cannot be read.
using NamedSizes = std::vector<std::pair<std::string, Bytes>>;
std::optional<BuiltData> find_like_data(const Workload& workload, NamedSizes files);
std::optional<BuiltData> find_like_data(const Workload& workload);  // of its files on this machine

// The training rows of one epoch.
struct EpochRows {
  std::int64_t rows = 0, length = 0, target_length = 0;  // target_length: of pairs, beside `length`
  std::int64_t tokens = 0;                               // without padding
  bool packed = false;
  std::vector<Bucket> buckets;       // with data.buckets: those that have rows
  std::vector<std::int64_t> unused;  // lengths of data.buckets that no row has
  double steps = 0;                  // of train.batch
  std::int64_t positions() const;
  std::int64_t step_rows() const;  // of a step on average, rounded up
  double padding() const;          // the share of positions that hold no token
};
EpochRows rows_of(const Workload& workload, const Packing& packing);
// As they would be for this workload's context and packing: by its table, if there is one; else all lengths are read.
// Errors: those of read_packing and dataset_lengths.
Result<EpochRows> rows_of(const Workload& workload, const BuiltData& data);
// "an epoch is 33,921 rows of 256 tokens, packed: 0.3% is padding".
std::string to_string(const EpochRows& rows);
// Of a bucket in an epoch; the last is filled with empty rows, or left out.
std::int64_t steps_of(const Workload& workload, const Bucket& bucket);
Node to_node(const EpochRows& rows);

// For the rule padded_rows: of the workload's dataset, as find_like_data finds it; nothing: it is not built.
std::optional<MeasuredRows> measured_rows(const Workload& workload);

}  // namespace systole
