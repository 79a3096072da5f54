#pragma once
// A job of `systole batch`: a file of rows, each of which is a request to one model. Read from YAML:
//
//   model: path/to/model            a run, a folder or a GGUF file; relative to the working folder, as the next
//   input: questions.csv            .jsonl, .csv, .parquet or .txt
//   output: answers.jsonl           or a table, .parquet, .csv or .tsv (result_table.h), with columns of the input
//   kind: completions               or chat, embeddings, classify or score
//   prompt: "Q: {question} A:"      the name of a field, or text with fields in braces (field_template.h)
//   max_tokens: 32                  and any other field of such a request (openai_requests.h, openai_embeddings.h,
//                                   score_request.h)
//
// Without `prompt` the rows of a .jsonl file are OpenAI's batch format, and the lines of a .txt file the prompts.
// Further keys say how the model is opened: name, slots, context, weights, pooling, normalize, chat_template; and when and
// by whom the job is run: schedule (cron_schedule.h), shards (shared_batch.h), cluster.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/cron_schedule.h"
#include "execute/serve/field_template.h"
#include "ground/base/document.h"
#include "ground/tensor/int4.h"

namespace systole {

enum class BatchKind { completions, chat, embeddings, classify, score };
const char* name_of(BatchKind kind);
// "/v1/chat/completions": the route whose requests the rows are; "": no route has such requests.
const char* url_of(BatchKind kind);
bool is_generated(BatchKind kind);  // new tokens: completions, chat
bool is_scored(BatchKind kind);     // the likelihood of texts: classify, score

// A column of a table of results that is a field of the input's rows (field_template.h).
struct CarriedColumn {
  std::string name, field;
};

struct BatchJob {
  std::string model, input;
  std::string output;  // the lines of JSON; where the job's `output` is a table, they lie beside it
  BatchKind kind = BatchKind::completions;
  std::optional<FieldTemplate> prompt = {};
  std::string name = {};  // that requests may call the model by; empty: the name of the model's folder
  std::int64_t slots = 4, context = 0;
  DType weights = DType::f32;  // f32: stored; i8, kInt4 (ground/tensor/int4.h)
  std::string pooling = {}, chat_template = {};
  bool normalize = true;
  std::optional<CronSchedule> schedule = {};
  std::optional<std::int64_t> shards = {};  // that processes of the job take in turn; 0: auto
  std::string array = {};                   // a file beside the output (vector_array.h); empty: none
  std::string table = {};                   // a file beside the output (result_table.h); empty: none
  std::vector<CarriedColumn> columns = {};  // of the table, behind its own
  Node cluster = {};                        // keys of a workload, for `render`; null: none
  Node fields = Node::map();                // of each request, where a row does not say otherwise
  Node results = {};                        // of the document, all that the results depend on
};

// Errors: invalid and unsupported, at their place: no map, a key that is missing, wrong, or of no request; a field that
// a batch has not: stream.
Result<BatchJob> parse_batch_job(std::string_view yaml, const std::string& file);

}  // namespace systole
