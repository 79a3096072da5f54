#pragma once
// Where a step's rows come from, as the trainer sees it: batches by input name, and a cursor that resumes exactly.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "execute/data/dataset.h"
#include "ground/base/clock.h"
#include "ground/base/document.h"

namespace systole {

// One input of the loss graph for all rows of a batch, row-major.
struct InputRows {
  std::string_view name;
  std::span<const std::byte> bytes;
  std::int64_t row_bytes = 0;
};

struct StepBatch {
  std::vector<InputRows> inputs;  // reused from batch to batch
  std::int64_t rows = 0;          // real ones
  std::int64_t label_count = 0;   // what the loss is divided by
  std::int64_t bytes = 0;         // of text that the labels stand for; 0 when not text
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; nullptr when a single pass is over. Allocates nothing once started.
  virtual Result<const StepBatch*> next() = 0;
  // Where the batch after the last one given begins: a JSON object for a checkpoint.
  virtual Node cursor() const = 0;
};

// Packed rows of tokens. `start`: what cursor() gave, or null. Errors: those of RowReader; invalid for a foreign
// cursor.
Result<std::unique_ptr<BatchSource>> open_text_source(std::shared_ptr<const PackedTokens> tokens,
                                                      RowReaderOptions options, const Node& start);

// Rows of the workload's made-up linear regression, pure functions of data.seed and the row's number: x uniform in [-1,
// 1), y = x W + b + noise. `held_out` rows lie after the training rows. One pass or endless, in order.
Result<std::unique_ptr<BatchSource>> open_linear_source(const Workload& workload, std::int64_t batch_rows,
                                                        bool held_out, bool endless, const Node& start);

}  // namespace systole
