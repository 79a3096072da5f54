#pragma once
// Columns of every kind, all that pages are written in, and rows made up from a seed, for tests and the fuzz target.

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "execute/data/formats/parquet/cell_text.h"
#include "execute/data/formats/parquet/reader.h"
#include "execute/data/formats/parquet/writer.h"

namespace systole::parquet {

inline constexpr std::array kCodecs{Codec::none, Codec::snappy, Codec::gzip, Codec::zstd};
inline constexpr std::array kEncodings{Encoding::plain,
                                       Encoding::dictionary,
                                       Encoding::rle,
                                       Encoding::delta_binary_packed,
                                       Encoding::delta_length_byte_array,
                                       Encoding::delta_byte_array,
                                       Encoding::byte_stream_split};

inline Column column_of(std::string name, Physical type, Meaning meaning = Meaning::plain, int width = 0) {
  Column column;
  column.name = std::move(name);
  column.type = type;
  column.meaning = meaning;
  column.width = width;
  return column;
}

inline std::vector<Column> flat_columns() {
  std::vector<Column> columns{
      column_of("flag", Physical::boolean),
      column_of("small", Physical::int32),
      column_of("large", Physical::int64),
      column_of("half", Physical::float32),
      column_of("whole", Physical::float64),
      column_of("text", Physical::bytes, Meaning::text),
      column_of("raw", Physical::bytes),
      column_of("five", Physical::fixed, Meaning::plain, 5),
      column_of("day", Physical::int32, Meaning::date),
      column_of("at", Physical::int64, Meaning::timestamp),
      column_of("price", Physical::int64, Meaning::decimal),
      column_of("count", Physical::int32, Meaning::unsigned_int),
  };
  columns[10].scale = 2;
  return columns;
}

// Each flat column, required, with nulls, and in lists of all four kinds of nulls.
inline std::vector<Column> every_column() {
  std::vector<Column> columns;
  for (const Column& flat : flat_columns()) {
    for (int kind = 0; kind < 6; ++kind) {
      Column column = flat;
      column.list = kind >= 2;
      column.nullable = kind % 2 == 1;
      column.nullable_elements = kind >= 4;
      column.name += fmt::format("_{}", kind);
      columns.push_back(column);
    }
  }
  return columns;
}

// Rows of cells that own their bytes. Values repeat, so that dictionaries and runs are worth something.
class MadeUpRows {
 public:
  explicit MadeUpRows(std::uint32_t seed) : random_(seed) {}

  std::vector<Cell> next(const std::vector<Column>& columns) {
    std::vector<Cell> row;
    for (const Column& column : columns) row.push_back(cell(column));
    return row;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  Cell cell(const Column& column) {
    std::vector<Value>& values = lists_.emplace_back();
    if (column.nullable && below(4) == 0) return {};
    const std::size_t count = column.list ? below(5) : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const bool null = column.list && column.nullable_elements && below(4) == 0;
      values.push_back(null ? Value() : value(column));
    }
    return {false, values};
  }

  Value value(const Column& column) {
    const auto wide = static_cast<std::int64_t>(std::uint64_t{random_()} << 32 | random_());
    const bool few = below(2) == 0;  // one of a few values, or any
    switch (column.type) {
      case Physical::boolean: return Value::of(static_cast<std::int64_t>(below(2)));
      case Physical::int32:
        if (few) return Value::of(static_cast<std::int64_t>(below(3)));
        if (column.meaning == Meaning::date) return Value::of(wide % 700'000);  // Python's years end with 9999
        return Value::of(std::int64_t{static_cast<std::int32_t>(wide)});
      case Physical::int64:
        if (few) return Value::of(static_cast<std::int64_t>(below(3)));
        return Value::of(column.meaning == Meaning::timestamp ? wide % 60'000'000'000'000'000 : wide);
      case Physical::float32: return Value::of(static_cast<double>(static_cast<float>(wide) / 3.0f));
      case Physical::float64: return Value::of(static_cast<double>(wide) / 7.0);
      default: break;
    }
    std::string& text = texts_.emplace_back("the same beginning ");
    if (column.type == Physical::fixed) text = few ? "abcde" : fmt::format("{:05}", below(100'000));
    if (column.type == Physical::bytes)
      text += few ? "and end" : std::string(below(40), static_cast<char>('a' + below(26)));
    if (column.name.starts_with("raw") && !few) text += "\xff";
    return Value::of(std::string_view(text));
  }

  std::mt19937 random_;
  std::deque<std::vector<Value>> lists_;
  std::deque<std::string> texts_;
};

inline std::string line_of(const std::vector<Column>& columns, const std::function<const Cell&(std::size_t)>& cell) {
  Node row = Node::map();
  for (std::size_t i = 0; i < columns.size(); ++i) row.set(columns[i].name, node_of(columns[i], cell(i)));
  return to_json(row);
}

// Writes `count` rows into the store; returns them as lines of JSON.
inline std::vector<std::string> write_made_up(Store& store, const std::string& path, const std::vector<Column>& columns,
                                              int count, const WriteOptions& options, std::uint32_t seed = 1) {
  MadeUpRows made(seed);
  std::vector<std::string> lines;
  const std::unique_ptr<WritableFile> file = store.create(path).value();
  Writer writer = Writer::create(*file, columns, options).value();
  for (int i = 0; i < count; ++i) {
    const std::vector<Cell> row = made.next(columns);
    lines.push_back(line_of(columns, [&](std::size_t c) -> const Cell& { return row[c]; }));
    writer.add(row).value();
  }
  writer.finish().value();
  return lines;
}

// The rows of a file as lines of JSON, of all columns or of those named.
inline Result<std::vector<std::string>> read_lines(const File& file, const std::vector<std::string>& names = {},
                                                   std::vector<Condition> where = {}) {
  std::vector<std::size_t> indices = names.empty() ? file.readable() : std::vector<std::size_t>{};
  for (const std::string& name : names) indices.push_back(TRY(file.column(name)));
  std::vector<Column> columns;
  for (const std::size_t index : indices) columns.push_back(file.metadata().columns[index]);
  Rows rows = Rows::of(file, indices, std::move(where));
  std::vector<std::string> lines;
  while (TRY(rows.next()))
    lines.push_back(line_of(columns, [&](std::size_t c) -> const Cell& { return rows.cell(c); }));
  return lines;
}

}  // namespace systole::parquet
