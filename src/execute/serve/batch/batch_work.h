#pragma once
// Computes the rows of a batch on an engine, several at once. Rows begin in the order in which they are given, and end in
// any.
//
// One thread at a time. The engine and the model's description must outlive it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "execute/serve/api_routes.h"
#include "execute/serve/batch/batch_journal.h"
#include "execute/serve/batch/batch_request.h"
#include "execute/serve/batch/engine_calls.h"

namespace systole {

struct BatchRow {
  std::size_t index = 0;
  int line = 0;  // of the input, from 1
  std::optional<std::string> custom_id = {};
};

// What a row takes: nothing of it is computed yet.
struct RowSize {
  std::int64_t prompt_tokens = 0;            // of all its prompts
  std::vector<SequenceSize> sequences = {};  // that the engine computes for it
};

class BatchWork {
 public:
  virtual ~BatchWork() = default;

  // Errors: the row's, as a server would refuse it with.
  virtual Result<RowSize> measure(BatchRequest request) = 0;
  // What the engine runs for sequences of rows that begin in this order, with answers as long as they may be.
  virtual EngineCalls calls_of(std::span<const SequenceSize> sequences) const = 0;
  // Whether another row is to begin before the next step.
  virtual bool has_room() const = 0;
  // Errors: the row's; then nothing of it is computed.
  virtual Status begin(const BatchRow& row, BatchRequest request) = 0;
  // Computes one batch. False: nothing is left. Errors: those of the device, and weights that are not finite.
  virtual Result<bool> step() = 0;
  // The rows that have ended since.
  std::vector<BatchRecord> take_ended() { return std::exchange(ended_, {}); }

 protected:
  std::vector<BatchRecord> ended_;
};

// For completions and chats, by a ServingLoop. `now`: Unix seconds, of answers and for chat templates; an answer depends
// on its row, on `seed` where the row says none, and on nothing else. Rows that are equal draw differently.
std::unique_ptr<BatchWork> make_completion_work(const ServedApi& api, Engine& engine, std::int64_t now);
// For embeddings, by TextVectors.
std::unique_ptr<BatchWork> make_embedding_work(const ServedApi& api, Engine& engine);

// For classify and score, by LogLikelihood. `before`: tokens at the start of each sequence. REQUIRES: the engine was
// created with `score`.
std::unique_ptr<BatchWork> make_score_work(const ServedApi& api, Engine& engine, std::vector<std::int32_t> before);

// Lines of the output: {"index", "custom_id", "response": {"status_code": 200, "body"}, "error": null}, where `body` is
// the route's answer, and the same with response: null and error: {"message", "type", "param", "code"}.
std::string answer_line(const BatchRow& row, const std::string& body);
BatchRecord refused_row(const BatchRow& row, Error error);

}  // namespace systole
