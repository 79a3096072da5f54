#include "execute/data/formats/parquet/metadata.h"

#include <array>

#include "execute/data/formats/parquet/schema_tree.h"
#include "execute/data/formats/parquet/thrift.h"
#include "ground/base/counted.h"
#include "ground/base/units.h"

namespace systole::parquet {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 18;  // a node of 7 bytes in the footer takes 200 in memory

using Type = ThriftType;

template <std::size_t n>
std::string name_at(const std::array<const char*, n>& names, int code, const char* kind) {
  if (code >= 0 && code < static_cast<int>(n)) return names[static_cast<std::size_t>(code)];
  return fmt::format("{} {}", kind, code);
}

Range read_range(ThriftReader& thrift) {
  Range range;
  thrift.fields([&](int id, Type type) {
    // Fields 1 and 2 are of writers that disagreed about the order.
    if (id == 3) return range.nulls = thrift.integer(type), true;
    if (id == 5) return range.highest = std::string(thrift.binary(type)), true;
    if (id == 6) return range.lowest = std::string(thrift.binary(type)), true;
    return false;
  });
  return range;
}

void read_chunk_metadata(ThriftReader& thrift, Chunk& chunk) {
  std::int64_t type_code = -1, codec = -1, size = -1, data = -1, dictionary = -1;
  chunk.values = -1;
  thrift.fields([&](int id, Type type) {
    switch (id) {
      case 1: type_code = thrift.integer(type); return true;
      case 4: codec = thrift.integer(type); return true;
      case 5: chunk.values = thrift.integer(type); return true;
      case 7: size = thrift.integer(type); return true;
      case 9: data = thrift.integer(type); return true;
      case 11: dictionary = thrift.integer(type); return true;
      case 12: chunk.range = read_range(thrift); return true;
      default: return false;
    }
  });
  if (!thrift.ok()) return;
  if (type_code < 0 || type_code > 7) thrift.refuse("a column chunk has no known type");
  if (codec < 0 || codec > 1000) thrift.refuse("a column chunk has no known compression");
  if (chunk.values < 0 || size < 0 || data < 0) thrift.refuse("a column chunk lacks its size, its place or its count");
  if (!thrift.ok()) return;
  chunk.type = static_cast<Physical>(type_code);
  chunk.codec = static_cast<Codec>(codec);
  chunk.begin = dictionary > 0 && dictionary < data ? dictionary : data;
  chunk.end = size > INT64_MAX - chunk.begin ? INT64_MAX : chunk.begin + size;
}

Chunk read_chunk(ThriftReader& thrift) {
  Chunk chunk;
  bool has_metadata = false;
  thrift.fields([&](int id, Type type) {
    if (id == 1) return chunk.elsewhere = std::string(thrift.binary(type)), true;
    if (id == 8 || id == 9) chunk.encrypted = true;
    if (id != 3 || type != Type::structure) return false;
    has_metadata = true;
    read_chunk_metadata(thrift, chunk);
    return true;
  });
  if (!has_metadata && !chunk.encrypted) thrift.refuse("a column chunk has no metadata");
  return chunk;
}

RowGroup read_group(ThriftReader& thrift, std::size_t columns) {
  RowGroup group{-1, {}};
  thrift.fields([&](int id, Type type) {
    if (id == 3) return group.rows = thrift.integer(type), true;
    if (id != 1) return false;
    thrift.list(type, Type::structure, [&] {
      group.chunks.push_back(read_chunk(thrift));
      if (group.chunks.size() > columns) thrift.refuse("a row group has more columns than the schema");
    });
    return true;
  });
  if (group.rows < 0) thrift.refuse("a row group does not say how many rows it has");
  return group;
}

// What the footer says must agree with itself and with the file's size.
Status check(const Metadata& metadata, std::int64_t pages_end, const std::string& file) {
  std::int64_t rows = 0;
  for (std::size_t g = 0; g < metadata.groups.size(); ++g) {
    const RowGroup& group = metadata.groups[g];
    const auto wrong = [&](const std::string& column, const std::string& what) {
      return error(ErrorKind::corrupt, "row group {}{}: {}", g, column.empty() ? "" : ", column '" + column + "'", what)
          .at({file});
    };
    if (group.chunks.size() != metadata.columns.size()) {
      return wrong("", fmt::format("it has {}, the schema has {}", counted(group.chunks.size(), "column"),
                                   metadata.columns.size()));
    }
    if (group.rows > INT64_MAX - rows) return wrong("", "it has too many rows");
    rows += group.rows;
    for (std::size_t c = 0; c < group.chunks.size(); ++c) {
      const Chunk& chunk = group.chunks[c];
      const Column& column = metadata.columns[c];
      if (chunk.encrypted || !chunk.elsewhere.empty()) continue;  // refused where it is asked for
      if (chunk.type != column.type) {
        return wrong(column.name,
                     fmt::format("its pages are {}, the schema says {}", name_of(chunk.type), name_of(column.type)));
      }
      if (chunk.begin < 4 || chunk.end > pages_end) {
        return wrong(column.name, fmt::format("its pages are said to be at bytes {} to {}, beyond those of the file",
                                              with_commas(chunk.begin), with_commas(chunk.end)));
      }
      if (column.outside.empty() && !column.list && chunk.values != group.rows) {
        return wrong(column.name,
                     fmt::format("it has {} for {}", counted(chunk.values, "value"), counted(group.rows, "row")));
      }
    }
  }
  if (rows == metadata.rows) return Done{};
  return error(ErrorKind::corrupt, "the footer says {}, its row groups have {}", counted(metadata.rows, "row"),
               with_commas(rows))
      .at({file});
}

}  // namespace

std::string name_of(Physical type) {
  static constexpr std::array<const char*, 8> kNames{"BOOLEAN", "INT32",  "INT64",      "INT96",
                                                     "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return name_at(kNames, static_cast<int>(type), "type");
}

std::string name_of(Codec codec) {
  static constexpr std::array<const char*, 8> kNames{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                     "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  return name_at(kNames, static_cast<int>(codec), "codec");
}

std::string name_of(Encoding encoding) {
  static constexpr std::array<const char*, 10> kNames{
      "PLAIN",          "encoding 1",          "PLAIN_DICTIONARY",        "RLE",
      "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
      "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
  return name_at(kNames, static_cast<int>(encoding), "encoding");
}

Result<Metadata> parse_metadata(std::span<const std::byte> footer, std::int64_t at, const std::string& file) {
  ThriftReader thrift(footer);
  Metadata metadata;
  metadata.rows = -1;
  std::vector<SchemaElement> schema;
  thrift.fields([&](int id, Type type) {
    switch (id) {
      case 2:
        thrift.list(type, Type::structure, [&] {
          schema.push_back(read_schema_element(thrift));
          if (schema.size() > kMostNodes) thrift.refuse("its schema has more than 262,144 parts");
        });
        return true;
      case 3: metadata.rows = thrift.integer(type); return true;
      case 4:
        thrift.list(type, Type::structure, [&] { metadata.groups.push_back(read_group(thrift, schema.size())); });
        return true;
      case 6: metadata.writer = std::string(thrift.binary(type)); return true;
      default: return false;
    }
  });
  if (metadata.rows < 0) thrift.refuse("it does not say how many rows the file has");
  if (!thrift.ok()) {
    return error(ErrorKind::corrupt, "byte {}: the footer cannot be read: {}",
                 with_commas(at + static_cast<std::int64_t>(thrift.position())), thrift.why())
        .at({file})
        .hinted("the file is damaged: fetch or write it again");
  }
  Result<std::vector<Column>> columns = columns_of(schema);
  if (!columns.ok()) return std::move(columns).error().at({file});
  metadata.columns = std::move(*columns);
  TRY(check(metadata, at, file));
  return metadata;
}

}  // namespace systole::parquet
