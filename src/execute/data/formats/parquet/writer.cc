#include "execute/data/formats/parquet/writer.h"

#include <set>

#include "execute/data/formats/parquet/column_writer.h"
#include "execute/data/formats/parquet/compression.h"
#include "execute/data/formats/parquet/encoder.h"
#include "execute/data/formats/parquet/schema_tree.h"

namespace systole::parquet {
namespace {

using Type = ThriftType;

struct WrittenChunk {
  ColumnWriter::Written done;  // without its pages
  std::int64_t begin = 0, size = 0;
};
struct WrittenGroup {
  std::vector<WrittenChunk> chunks;
  std::int64_t rows = 0;
};

void write_range(ThriftWriter& thrift, const Range& range) {
  thrift.begin(12);
  thrift.integer(3, range.nulls, Type::i64);
  if (range.highest) thrift.binary(5, *range.highest);
  if (range.lowest) thrift.binary(6, *range.lowest);
  thrift.end();
}

void write_chunk(ThriftWriter& thrift, const Column& column, Codec codec, const WrittenChunk& chunk) {
  thrift.begin_item();
  thrift.integer(2, 0, Type::i64);  // a place that readers do not use any more
  thrift.begin(3);
  thrift.integer(1, static_cast<int>(column.type));
  thrift.begin_list(2, Type::i32, chunk.done.encodings.size());
  for (const Encoding encoding : chunk.done.encodings) thrift.item(static_cast<std::int64_t>(encoding));
  thrift.begin_list(3, Type::binary, column.list ? 3 : 1);
  thrift.item(std::string_view(column.name));
  if (column.list) {
    thrift.item(std::string_view("list"));
    thrift.item(std::string_view("element"));
  }
  thrift.integer(4, static_cast<int>(codec));
  thrift.integer(5, chunk.done.values, Type::i64);
  thrift.integer(6, chunk.done.expanded, Type::i64);
  thrift.integer(7, chunk.size, Type::i64);
  thrift.integer(9, chunk.begin + chunk.done.dictionary_size, Type::i64);
  if (chunk.done.dictionary_size > 0) thrift.integer(11, chunk.begin, Type::i64);
  write_range(thrift, chunk.done.range);
  thrift.end();
  thrift.end();
}

void write_group(ThriftWriter& thrift, const std::vector<Column>& columns, Codec codec, const WrittenGroup& group) {
  thrift.begin_item();
  thrift.begin_list(1, Type::structure, group.chunks.size());
  std::int64_t expanded = 0, size = 0;
  for (std::size_t i = 0; i < group.chunks.size(); ++i) {
    write_chunk(thrift, columns[i], codec, group.chunks[i]);
    expanded += group.chunks[i].done.expanded;
    size += group.chunks[i].size;
  }
  thrift.integer(2, expanded, Type::i64);
  thrift.integer(3, group.rows, Type::i64);
  thrift.integer(5, group.chunks[0].begin, Type::i64);
  thrift.integer(6, size, Type::i64);
  thrift.end();
}

std::string footer_of(const std::vector<Column>& columns, Codec codec, const std::vector<WrittenGroup>& groups,
                      std::int64_t rows) {
  ThriftWriter thrift;
  thrift.integer(1, 2);
  const std::vector<SchemaElement> schema = schema_of(columns);
  thrift.begin_list(2, Type::structure, schema.size());
  for (const SchemaElement& element : schema) write_schema_element(thrift, element);
  thrift.integer(3, rows, Type::i64);
  thrift.begin_list(4, Type::structure, groups.size());
  for (const WrittenGroup& group : groups) write_group(thrift, columns, codec, group);
  thrift.binary(6, "systole");
  thrift.begin_list(7, Type::structure, columns.size());  // every column in its type's order
  for (std::size_t i = 0; i < columns.size(); ++i) {
    thrift.begin_item();
    thrift.begin(1);
    thrift.end();
    thrift.end();
  }
  thrift.end();
  return thrift.take();
}

Status check_columns(const std::vector<Column>& columns) {
  if (columns.empty()) return error(ErrorKind::invalid, "a Parquet file needs a column");
  std::set<std::string_view> names;
  for (const Column& column : columns) {
    if (column.type == Physical::int96 || !column.outside.empty())
      return error(ErrorKind::invalid, "column '{}' cannot be written", column.name);
    if (column.name.empty() || !names.insert(column.name).second)
      return error(ErrorKind::invalid, "the column '{}' has no name of its own", column.name)
          .hinted("give every column another name");
  }
  return Done{};
}

}  // namespace

struct Writer::State {
  WritableFile& file;
  std::vector<Column> columns;
  WriteOptions options;
  std::vector<ColumnWriter> writers = {};
  std::vector<WrittenGroup> groups = {};
  std::int64_t at = 0, rows = 0, group_rows = 0;

  Status append(std::string_view bytes) {
    TRY(file.append(std::as_bytes(std::span(bytes))));
    at += static_cast<std::int64_t>(bytes.size());
    return Done{};
  }

  Status end_group() {
    if (group_rows == 0) return Done{};
    WrittenGroup group;
    group.rows = group_rows;
    for (ColumnWriter& writer : writers) {
      WrittenChunk chunk{writer.finish(), at, 0};
      chunk.size = static_cast<std::int64_t>(chunk.done.pages.size());
      TRY(append(std::exchange(chunk.done.pages, {})));
      group.chunks.push_back(std::move(chunk));
    }
    groups.push_back(std::move(group));
    group_rows = 0;
    return Done{};
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::create(WritableFile& file, std::vector<Column> columns, const WriteOptions& options) {
  TRY(check_columns(columns));
  CHECK(is_known(options.codec), "{}", name_of(options.codec));
  auto state = std::make_unique<State>(State{file, std::move(columns), options});
  for (const Column& column : state->columns) state->writers.emplace_back(column, state->options);
  TRY(state->append("PAR1"));
  return Writer(std::move(state));
}

Status Writer::add(std::span<const Cell> row) {
  State& state = *state_;
  CHECK(row.size() == state.writers.size(), "{} cells for {} columns", row.size(), state.writers.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (const char* why = state.writers[i].check(row[i]); why != nullptr) {
      return error(ErrorKind::invalid, "row {}, column '{}': {}", with_commas(state.rows), state.columns[i].name, why);
    }
  }
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    state.writers[i].add(row[i]);
    bytes += state.writers[i].bytes();
  }
  ++state.rows;
  ++state.group_rows;
  if (bytes < state.options.group_bytes && state.group_rows < state.options.group_rows) return Done{};
  return state.end_group();
}

Status Writer::finish() {
  State& state = *state_;
  TRY(state.end_group());
  std::string footer = footer_of(state.columns, state.options.codec, state.groups, state.rows);
  const auto size = static_cast<std::uint32_t>(footer.size());
  footer.append(reinterpret_cast<const char*>(&size), 4).append("PAR1");
  return state.append(footer);
}

std::int64_t Writer::rows() const { return state_->rows; }

}  // namespace systole::parquet
