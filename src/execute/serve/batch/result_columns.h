#pragma once
// What a table of results has of each answer, by the kind of the job. A row of the input is a row of the table; one
// with several answers (`n`, several inputs in one request) is as many rows, numbered by `item`. A row with an error is
// one row, in which `status` is "error" and the columns of an answer are null.
//
//   all                  index item custom_id status error_code error
//   completions, chat    answer finish_reason prompt_tokens completion_tokens, of chats tool_calls
//   embeddings           embedding prompt_tokens
//   classify             label probability log_probability probabilities
//   score                log_probability tokens bytes bits_per_byte
//
// Tokens are of the whole row: they stand at item 0, so that a sum counts them once.

#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/batch/batch_job.h"

namespace systole {

struct ResultColumn {
  enum class Type { boolean, integer, real, float32, text };
  std::string name;
  Type type = Type::text;
  bool list = false;
  bool nullable = true;

  friend bool operator==(const ResultColumn&, const ResultColumn&) = default;
};

std::vector<ResultColumn> result_columns(BatchKind kind);

// A value per column: null, a scalar, or a list of numbers.
using ResultRow = std::vector<Node>;
// The rows of the table that a line of the output is (batch_work.h). `file`, for messages. Errors: invalid: the line is
// none of such a job.
Result<std::vector<ResultRow>> result_rows(BatchKind kind, std::string_view line, const std::string& file);

}  // namespace systole
