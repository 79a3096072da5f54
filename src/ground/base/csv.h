#pragma once
// A table as comma-separated values (RFC 4180): a first row of column names, then rows of as many fields. Lines end in
// LF or CRLF; a field in double quotes may hold commas, line breaks and, doubled, quotes. A byte order mark is skipped,
// and the last line may lack its end. Every field knows its line and column, which count bytes from 1.
//
// Fields are views into the text that the table keeps, or into the copies that it makes of those with doubled quotes.

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

class CsvTable {
 public:
  // `file` is the name that places show. Errors: invalid, all at once, each at its place: no header, a column without a
  // name or twice, a row of another width, a quote that never closes or stands amid a field, text behind a closing
  // quote, a carriage return without its line feed. Alone: bytes that are no text, or more than 1 GiB of them.
  static Result<CsvTable> read(std::string text, std::string_view file);

  // Whether the columns are these: all of `required`, and no others than those and `optional`. Errors: invalid, all at
  // once: the columns that are missing, by name; those that are unknown, with the nearest.
  Status expect_columns(std::span<const std::string_view> required, std::span<const std::string_view> optional) const;

  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);
  std::size_t column(std::string_view name) const;  // or kNoColumn

  const std::string& file() const { return *file_; }
  std::size_t width() const { return width_; }
  std::size_t num_rows() const { return fields_.size() / width_ - 1; }  // without the header
  std::string_view at(std::size_t row, std::size_t column) const { return field(row, column).text; }
  Where where(std::size_t row, std::size_t column) const;

 private:
  friend class CsvScanner;
  struct Field {
    std::string_view text;
    int line = 0, col = 0;
  };
  const Field& field(std::size_t row, std::size_t column) const { return fields_[(row + 1) * width_ + column]; }

  std::unique_ptr<const std::string> text_, file_;  // on the heap, so that views outlive a move
  std::deque<std::string> unescaped_;
  std::size_t width_ = 0;
  std::vector<Field> fields_;  // the header's, then row by row
};

}  // namespace systole
