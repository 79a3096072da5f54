#pragma once
// What the footer of a Parquet file says: its columns and, per row group, where each column's pages are.
//
// A file is "PAR1", the pages, the footer (a struct of Thrift's compact protocol), its length as u32, "PAR1". Numbers
// and ids are of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
//
// Of the columns, a subset is read: flat ones and lists of flat ones. Others (structs, maps, lists of lists) say in
// `outside` what they are, so that a file that has some is read for its other columns.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::parquet {

enum class Physical { boolean = 0, int32 = 1, int64 = 2, int96 = 3, float32 = 4, float64 = 5, bytes = 6, fixed = 7 };
enum class Codec { none = 0, snappy = 1, gzip = 2, lzo = 3, brotli = 4, lz4 = 5, zstd = 6, lz4_raw = 7 };
enum class Encoding {
  plain = 0,
  plain_dictionary = 2,  // the older name of `dictionary`
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  dictionary = 8,
  byte_stream_split = 9,
};
enum class Meaning { plain, text, json, unsigned_int, decimal, date, time, timestamp, uuid, float16 };
enum class TimeUnit { millis, micros, nanos };

std::string name_of(Physical type);  // as Parquet writes it: "BYTE_ARRAY"
std::string name_of(Codec codec);    // "SNAPPY"; "codec 12" of an unknown one
std::string name_of(Encoding encoding);

struct Column {
  std::string name;  // of the top-level field; of a part of a struct, with its path: "a.b"
  Physical type = Physical::bytes;
  int width = 0;  // bytes of a value of type fixed
  Meaning meaning = Meaning::plain;
  TimeUnit unit = TimeUnit::micros;
  bool utc = false;   // of a timestamp
  int scale = 0;      // of a decimal
  int precision = 0;  // of a decimal: its digits; 0: not said
  bool list = false;
  bool nullable = false;           // the value, or the list
  bool nullable_elements = false;  // of a list
  std::string outside;             // not empty: why the column cannot be read ("a struct")

  int max_definition() const { return nullable + (list ? 1 + nullable_elements : 0); }
  int max_repetition() const { return list; }
};

// Smallest and largest value of a column of a row group, as bytes of the plain encoding.
struct Range {
  std::optional<std::string> lowest, highest;
  std::int64_t nulls = -1;  // -1: not said
};

struct Chunk {
  Physical type = Physical::bytes;
  Codec codec = Codec::none;
  std::int64_t values = 0;          // nulls and empty lists too
  std::int64_t begin = 0, end = 0;  // bytes of the file
  std::string elsewhere;            // another file that has it
  bool encrypted = false;
  Range range;
};

struct RowGroup {
  std::int64_t rows = 0;
  std::vector<Chunk> chunks;  // one per column
};

struct Metadata {
  std::int64_t rows = 0;
  std::vector<Column> columns;  // one per leaf of the schema, in its order
  std::vector<RowGroup> groups;
  std::string writer;  // "parquet-cpp-arrow version 26.0.1"; may be empty
};

// `footer` begins at byte `at` of the file, and the pages end there. Errors: corrupt, with the byte.
Result<Metadata> parse_metadata(std::span<const std::byte> footer, std::int64_t at, const std::string& file);

}  // namespace systole::parquet
