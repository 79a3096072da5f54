#pragma once
// A job of `systole batch`: a file of rows, each of which is a request to one model. Read from YAML:
//
//   model: path/to/model            a run, a folder or a GGUF file; relative to the working folder, as the next
//   input: questions.csv            .jsonl, .csv or .txt
//   output: answers.jsonl
//   kind: completions               or chat, embeddings, classify or score
//   prompt: "Q: {question} A:"      the name of a field, or text with fields in braces (field_template.h)
//   max_tokens: 32                  and any other field of such a request (openai_requests.h, openai_embeddings.h,
//                                   score_request.h)
//
// Without `prompt` the rows of a .jsonl file are OpenAI's batch format, and the lines of a .txt file the prompts.
// Further keys say how the model is opened: name, slots, context, weights, pooling, normalize, chat_template.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

struct BatchJob {
  std::string model, input, output;
  BatchKind kind = BatchKind::completions;
  std::optional<FieldTemplate> prompt = {};
  std::string name = {};  // that requests may call the model by; empty: the name of the model's folder
  std::int64_t slots = 4, context = 0;
  DType weights = DType::f32;  // f32: stored; i8, kInt4 (ground/tensor/int4.h)
  std::string pooling = {}, chat_template = {};
  bool normalize = true;
  Node fields = Node::map();  // of each request, where a row does not say otherwise
  Node results = {};          // of the document, all that the results depend on
};

// Errors: invalid and unsupported, at their place: no map, a key that is missing, wrong, or of no request; a field that
// a batch has not: stream.
Result<BatchJob> parse_batch_job(std::string_view yaml, const std::string& file);

}  // namespace systole
