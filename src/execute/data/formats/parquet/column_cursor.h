#pragma once
// A column of a row group, row by row: from pages to cells. Two small numbers go with each value: its repetition level
// (0: a row begins) and its definition level (how much of the way to the value is there: list, element, value).
//
// Memory: the largest page, the dictionary, and a batch of values.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "execute/data/formats/parquet/bits.h"
#include "execute/data/formats/parquet/decoder.h"
#include "execute/data/formats/parquet/page.h"

namespace systole::parquet {

class ColumnCursor {
 public:
  // At the first row of the chunk. Borrows file and column. Errors: as PageReader::open.
  static Result<std::unique_ptr<ColumnCursor>> open(const ReadableFile& file, const Chunk& chunk, const Column& column,
                                                    Place place, PageLimits limits);

  // The next row; the cell is valid until the next call. Errors: as PageReader::next; corrupt: there is no other row.
  Status next(Cell& cell);
  // After the last row: refuses values that belong to no row.
  Status finish();

 private:
  static constexpr std::size_t kBatch = 1024;
  static constexpr std::size_t kMostElements = std::size_t{1} << 24;  // of one list

  ColumnCursor(PageReader pages, const Column& column, PageLimits limits, std::int64_t values)
      : pages_(std::move(pages)), column_(column), limits_(limits), expected_(values) {}

  Result<bool> fill();  // the next batch; false at the chunk's end
  Result<bool> next_page();
  Status read_dictionary(const Page& page);
  Status read_levels(std::size_t count, std::size_t& there);
  Status next_list(Cell& cell);
  Status add_element(bool there);
  Error corrupt(const char* why) const;

  PageReader pages_;
  const Column& column_;
  PageLimits limits_;
  std::int64_t expected_, seen_ = 0;  // values of the chunk

  std::vector<std::byte> dictionary_bytes_;
  std::vector<Value> dictionary_;
  std::unique_ptr<Decoder> decoder_;  // of the page
  RunReader repetition_levels_, definition_levels_;
  std::int64_t page_left_ = 0;  // values of the page that are in no batch yet

  std::array<std::uint8_t, kBatch> repetition_{}, definition_{};
  std::array<Value, kBatch> values_{};
  std::size_t count_ = 0, at_ = 0, value_at_ = 0;  // of the batch

  std::vector<Value> elements_;  // of the row's list
  std::string texts_;            // theirs
};

}  // namespace systole::parquet
