#pragma once
// The pages of one column of a row group, while it is written (writer.h).

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "execute/data/formats/parquet/writer.h"

namespace systole::parquet {

class ColumnWriter {
 public:
  ColumnWriter(const Column& column, const WriteOptions& options) : column_(column), options_(options) { begin(); }

  // Null, or why the cell is none of this column's.
  const char* check(const Cell& cell) const;
  // REQUIRES: check() is content.
  void add(const Cell& cell);
  std::int64_t bytes() const { return chunk_bytes_ + page_bytes_; }  // not compressed, about

  struct Written {
    std::string pages;
    std::int64_t values = 0, expanded = 0;
    std::int64_t dictionary_size = 0;  // of `pages`, with its header; 0: none
    std::vector<Encoding> encodings;
    Range range;
  };
  Written finish();  // and begins anew

 private:
  static constexpr std::size_t kDictionary = std::size_t{1} << 20;  // bytes

  void begin();
  bool fits_dictionary(const Cell& cell) const;
  void add_value(const Value& value);
  void add_level(std::uint32_t repetition, std::uint32_t definition);
  void widen(const Value& value);
  void flush();
  void put_page(std::string& out, int kind, const std::string& levels, std::size_t repetition_size,
                const std::string& values, std::int64_t count, Encoding encoding);
  Encoding encoding_now() const;

  const Column& column_;
  const WriteOptions& options_;
  Written done_;
  std::string pages_;  // of data
  std::int64_t chunk_bytes_ = 0, page_bytes_ = 0;

  // Of the page.
  std::vector<std::uint32_t> repetition_, definition_;
  std::vector<Value> values_;  // their bytes are in texts_, by offset until the page is written
  std::vector<std::uint32_t> indices_;
  std::string texts_;
  std::int64_t page_rows_ = 0, page_nulls_ = 0;

  bool use_dictionary_ = false;
  std::unordered_map<std::string, std::uint32_t> dictionary_;  // by the bytes of the plain encoding
  std::string dictionary_page_;
  bool has_range_ = false, nan_ = false;
  Value lowest_, highest_;
  std::string lowest_text_, highest_text_;
};

}  // namespace systole::parquet
