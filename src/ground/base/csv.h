#pragma once
// A table of comma-separated values (RFC 4180): a first row of column names, then rows with the same number of fields.
// Lines end in LF or CRLF. A field in double quotes may contain commas, line breaks and doubled quotes. A byte order
// mark is skipped, and the last line may lack its end. Every field knows its line and column, 1-based, in bytes.
//
// Fields are views into the table's own text, or into unescaped copies of fields with doubled quotes.

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
  // `file` is the file name in error places. Errors: invalid, all at once, each at its place: no header, a column
  // without a name or twice, a row of another width, a quote that never closes or appears inside an unquoted field,
  // text after a closing quote, a carriage return without its line feed. Reported alone: invalid UTF-8, or more than 1
  // GiB of text.
  static Result<CsvTable> read(std::string text, std::string_view file);

  // Checks that the columns are all of `required`, and no others than those and `optional`. Errors: invalid, all at
  // once: the missing columns, by name; the unknown ones, with the nearest name.
  Status expect_columns(std::span<const std::string_view> required, std::span<const std::string_view> optional) const;

  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);
  std::size_t column(std::string_view name) const;  // or kNoColumn

  const std::string& file() const { return *file_; }
  std::size_t width() const { return width_; }
  std::string_view name(std::size_t column) const { return fields_[column].text; }
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
