#pragma once
// The rows of a batch: lines of JSON (.jsonl), a table (.csv or .parquet), or lines of text (.txt), each row as a map of
// fields. A row of text has one field, `text`. Lines end in LF or CRLF; of JSON, empty ones are no rows.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/batch/batch_job.h"
#include "execute/serve/json_lines.h"
#include "ground/base/csv.h"
#include "ground/base/hash.h"

namespace systole {

class BatchInput {
 public:
  // By the extension of `file`, its name in errors. Errors: invalid: another extension; a table that is none, with all
  // its places (csv.h).
  static Result<BatchInput> read(std::string text, const std::string& file);

  std::size_t rows() const { return table_ ? table_->num_rows() : lines_.size(); }
  // Where it begins: a line, from 1.
  Where where(std::size_t row) const;
  // Errors: invalid, at its place: a line that is no JSON object, or not UTF-8.
  Result<Node> fields(std::size_t row) const;
  const Hash128& hash() const { return hash_; }  // of the whole text, and of the extension
  const std::string& file() const { return file_; }

  // Gives a job without a prompt the one that lines of text have. Errors: invalid: a table, or a kind of which rows are
  // no requests, and no prompt; a field of the prompt that no row has.
  Status complete(BatchJob& job) const;

 private:
  enum class Format { json, table, text, columns };

  Format format_ = Format::json;
  std::string file_;
  Hash128 hash_;
  std::unique_ptr<const std::string> text_;  // on the heap, so that views outlive a move
  std::vector<TextLine> lines_;
  std::vector<std::string> columns_;  // empty: a row may have any
  std::optional<CsvTable> table_;
};

}  // namespace systole
