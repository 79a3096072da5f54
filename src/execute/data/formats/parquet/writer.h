#pragma once
// Writes Parquet files of flat and list columns, as pyarrow and others read them. A column begins with a dictionary and
// goes on without where that grows beyond kDictionary; its pages have CRCs, its row groups statistics.
//
// Memory: a row group, compressed, and a page per column.

#include <memory>
#include <string>
#include <vector>

#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/value.h"
#include "ground/store/store.h"

namespace systole::parquet {

struct WriteOptions {
  Codec codec = Codec::snappy;
  // dictionary: with plain pages once it is full. Another encoding is of the columns whose type has it; the others are
  // plain.
  Encoding encoding = Encoding::dictionary;
  int page_version = 1;  // 1 or 2, of data pages
  bool crc = true;
  std::int64_t page_bytes = std::int64_t{1} << 20;    // about, not compressed
  std::int64_t group_bytes = std::int64_t{64} << 20;  // about, not compressed
  std::int64_t group_rows = std::int64_t{1} << 20;    // at most
};

class Writer {
 public:
  // Appends to `file`, which is empty; borrows it. Columns have names, types and no `outside`.
  // Errors: invalid: no columns, a name twice, a column that cannot be written.
  static Result<Writer> create(WritableFile& file, std::vector<Column> columns, const WriteOptions& options = {});
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // A row, a cell per column. Errors: io, no_space; invalid, with the row and column: a null where the column has none,
  // a value of another kind or length.
  Status add(std::span<const Cell> row);
  // Writes what is left and the footer. REQUIRES: not called before.
  Status finish();
  std::int64_t rows() const;

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace systole::parquet
