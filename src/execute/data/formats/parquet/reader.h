#pragma once
// Reads Parquet files: rows in the file's order, of the columns that are asked for, and of those that match conditions.
// Row groups whose statistics say that no row matches are not read. What of the format is read stands in
// docs/guide/data.md; everything else is refused by name, with the column.
//
// Memory: the footer, and per column asked for a page, its compressed bytes and the dictionary.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/formats/parquet/column_cursor.h"
#include "execute/data/formats/parquet/condition.h"

namespace systole::parquet {

struct ReadLimits {
  PageLimits page;
  std::int64_t largest_footer = std::int64_t{64} << 20;
};

// Thread safety: const access.
class File {
 public:
  // Errors call it `shown`. Borrows the store. Errors: not_found, io; corrupt: no Parquet file, or truncated, or
  // damaged; unsupported: encrypted; does_not_fit: the footer.
  static Result<File> open(Store& store, const std::string& path, const std::string& shown, ReadLimits limits = {});

  const Metadata& metadata() const { return metadata_; }
  const std::string& shown() const { return shown_; }
  // The columns that can be read.
  std::vector<std::size_t> readable() const;
  // Errors: invalid: none of that name (with the nearest); unsupported: what it is, of those that are not read.
  Result<std::size_t> column(std::string_view name) const;

 private:
  friend class Rows;
  std::unique_ptr<ReadableFile> file_;
  Metadata metadata_;
  std::string shown_;
  ReadLimits limits_;
};

// The rows of a file. One thread at a time.
class Rows {
 public:
  // `columns`: of the file, readable; those of the conditions are added behind them. Borrows the file.
  static Rows of(const File& file, std::vector<std::size_t> columns, std::vector<Condition> where = {});

  // The cell of a column, which is read from now on, also in the row that next() gave. REQUIRES: next() was true; the
  // column is readable. Errors: as next().
  Result<std::size_t> cell_of(std::size_t column);
  // The next row that matches, or false after the last. Errors: as ColumnCursor::next; the first one, of cell_of() too,
  // is that of every call from then on: behind a bad page no column is where the others are.
  Result<bool> next();
  // REQUIRES: next() was true.
  const Cell& cell(std::size_t i) const { return cells_[i]; }
  std::int64_t row() const { return first_ + at_ - 1; }  // in the file, from 0
  std::size_t group() const { return group_ - 1; }
  std::size_t groups_skipped() const { return skipped_; }  // by their statistics

 private:
  struct Test {
    Condition condition;
    std::size_t cell;
  };
  Result<bool> advance();
  Result<std::size_t> find_cell(std::size_t column);
  Result<bool> next_group();
  Status open_cursor(std::size_t column);
  Status finish_group();

  const File* file_ = nullptr;
  std::vector<std::size_t> columns_;
  std::vector<Test> tests_;
  std::vector<std::unique_ptr<ColumnCursor>> cursors_;
  std::vector<Cell> cells_;
  std::optional<Error> failed_;                 // the first error
  std::size_t group_ = 0, skipped_ = 0;         // the next group
  std::int64_t first_ = 0, at_ = 0, rows_ = 0;  // of the group: its first row, rows taken, rows
};

}  // namespace systole::parquet
