#pragma once
// The trainer's source of rows: batches by input name, and a cursor that resumes exactly.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  std::int64_t rows = 0;          // without padding
  std::int64_t length = 0;        // of the rows, one of the Job's shapes; 0: the only one
  std::int64_t label_count = 0;   // divisor of the loss
  std::int64_t bytes = 0;         // of the text that the labels represent; 0: not text
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; nullptr at the end of a single pass. Allocates nothing once started.
  virtual Result<const StepBatch*> next() = 0;
  // The position after the last batch returned: a JSON object for a checkpoint.
  virtual Node cursor() const = 0;
  // What the consumer waited for so far, by stage; empty: not counted.
  virtual std::vector<std::pair<std::string, Seconds>> waits() const { return {}; }
};

// Packed rows of tokens. `start`: a cursor(), or null. Errors: those of RowReader; invalid for a foreign cursor.
Result<std::unique_ptr<BatchSource>> open_text_source(std::shared_ptr<const PackedTokens> tokens,
                                                      RowReaderOptions options, const Node& start);

// Rows of the workload's synthetic linear regression, pure functions of data.seed and the row's number: x uniform in
// [-1, 1), y = x W + b + noise. `held_out` rows come after the training rows. One pass or endless, in order.
Result<std::unique_ptr<BatchSource>> open_linear_source(const Workload& workload, std::int64_t batch_rows,
                                                        bool held_out, bool endless, const Node& start);

}  // namespace systole
