#include "execute/serve/batch/result_table.h"

#include <algorithm>
#include <deque>

#include "execute/data/formats/csv_records.h"
#include "execute/data/formats/parquet/reader.h"
#include "execute/data/formats/parquet/writer.h"
#include "execute/serve/batch/batch_journal.h"
#include "execute/serve/batch/carried_columns.h"
#include "ground/base/counted.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

using Type = ResultColumn::Type;
using TakeRow = std::function<Status(const ResultRow&)>;

// Calls `take` with each row of the table.
Status for_each_row(Store& store, const std::string& lines, const BatchJob& job, const BatchInput& input,
                    const std::vector<ResultColumn>& carried, const TakeRow& take) {
  std::size_t index = 0;
  const std::int64_t size = TRY(store.size(lines)).count();
  TRY(for_each_line(store, lines, size, [&](std::string_view line, std::int64_t) -> Status {
    if (index == input.rows()) return error(ErrorKind::invalid, "'{}' has more lines than the input rows", lines);
    const ResultRow behind = carried_row(job, input, index, carried);
    for (ResultRow& row : TRY(result_rows(job.kind, line, lines))) {
      row.insert(row.end(), behind.begin(), behind.end());
      TRY(take(row));
    }
    ++index;
    return {};
  }));
  if (index == input.rows()) return {};
  return error(ErrorKind::invalid, "'{}' has {}, and the input {}", lines, counted(index, "line"),
               counted(input.rows(), "row"));
}

parquet::Column parquet_column(const ResultColumn& column) {
  parquet::Column made;
  made.name = column.name;
  made.list = column.list;
  made.nullable = column.nullable;
  switch (column.type) {
    case Type::boolean: made.type = parquet::Physical::boolean; break;
    case Type::integer: made.type = parquet::Physical::int64; break;
    case Type::real: made.type = parquet::Physical::float64; break;
    case Type::float32: made.type = parquet::Physical::float32; break;
    case Type::text: made.meaning = parquet::Meaning::text; break;
  }
  return made;
}

Result<parquet::Value> parquet_value(Type type, const Node& node) {
  switch (type) {
    case Type::boolean: return parquet::Value::of(std::int64_t{TRY(node.as_bool()) ? 1 : 0});
    case Type::integer: return parquet::Value::of(TRY(node.as_int()));
    case Type::real:
    case Type::float32: return parquet::Value::of(TRY(node.as_double()));
    case Type::text: return parquet::Value::of(std::string_view(node.text()));
  }
  return parquet::Value();
}

// Turns a row into cells, which are valid until the next one.
class ParquetCells {
 public:
  explicit ParquetCells(const std::vector<ResultColumn>& columns)
      : columns_(columns), values_(columns.size()), cells_(columns.size()) {}

  Result<std::span<const parquet::Cell>> of(const ResultRow& row) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::span<const Node> nodes = columns_[i].list ? row[i].items() : std::span(&row[i], 1);
      values_[i].clear();
      cells_[i] = {row[i].is_null(), {}};
      if (cells_[i].null) continue;
      for (const Node& node : nodes) values_[i].push_back(TRY(parquet_value(columns_[i].type, node)));
      cells_[i].values = values_[i];
    }
    return std::span<const parquet::Cell>(cells_);
  }

 private:
  const std::vector<ResultColumn>& columns_;
  std::vector<std::vector<parquet::Value>> values_;
  std::vector<parquet::Cell> cells_;
};

Status write_parquet(Store& store, const std::string& path, const std::vector<ResultColumn>& columns,
                     const std::function<Status(const TakeRow&)>& give) {
  TRY(remove_unfinished(store, path));
  return write_whole(store, path, [&](WritableFile& file) -> Status {
    std::vector<parquet::Column> made;
    for (const ResultColumn& column : columns) made.push_back(parquet_column(column));
    parquet::Writer writer = TRY(parquet::Writer::create(file, std::move(made)));
    ParquetCells cells(columns);
    TRY(give([&](const ResultRow& row) -> Status { return writer.add(TRY(cells.of(row))); }));
    return writer.finish();
  });
}

std::string csv_text(const Node& node) {
  if (node.is_null()) return {};
  return node.is_scalar() ? node.text() : to_json(node);
}

Status write_csv(Store& store, const std::string& path, const std::vector<ResultColumn>& columns,
                 const std::function<Status(const TakeRow&)>& give) {
  std::vector<std::string> names;
  for (const ResultColumn& column : columns) names.push_back(column.name);
  const std::unique_ptr<RecordWriter> writer = TRY(create_csv(store, path, names));
  std::vector<std::string> texts(columns.size());
  std::vector<RecordField> fields(columns.size());
  TRY(give([&](const ResultRow& row) -> Status {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      texts[i] = csv_text(row[i]);
      fields[i] = {columns[i].name, texts[i]};
    }
    return writer->add_fields(fields);
  }));
  return writer->finish();
}

Result<std::vector<std::string>> names_there(Store& store, const std::string& table, const std::string& shown) {
  std::vector<std::string> names;
  if (!table.ends_with(".parquet")) return TRY(open_csv({&store, table, shown}))->field_names();
  const parquet::File file = TRY(parquet::File::open(store, table, shown));
  for (const parquet::Column& column : file.metadata().columns) names.push_back(column.name);
  return names;
}

// Beside the journal of the lines.
std::string record_of(const std::string& lines) { return lines + ".journal/table"; }

// Of what fields the table's columns are: the journal's facts do not say it, as no row depends on it.
std::string record_text(const BatchJob& job) {
  Node columns = Node::sequence();
  for (const CarriedColumn& column : job.columns)
    columns.push(Node::map({{"name", column.name}, {"field", column.field}}));
  return to_json(Node::map({{"table", job.table}, {"columns", columns}})) + "\n";
}

}  // namespace

Status write_result_table(Store& store, const std::string& lines, const BatchJob& job, const BatchInput& input) {
  const std::vector<ResultColumn> carried = carried_columns(job, input);
  std::vector<ResultColumn> columns = result_columns(job.kind);
  columns.insert(columns.end(), carried.begin(), carried.end());
  // Before the table: a table with a record is always the one that the record tells of.
  TRY(write_whole(store, record_of(lines), record_text(job)));
  const auto give = [&](const TakeRow& take) { return for_each_row(store, lines, job, input, carried, take); };
  return job.table.ends_with(".parquet") ? write_parquet(store, job.table, columns, give)
                                         : write_csv(store, job.table, columns, give);
}

Result<bool> is_recorded(Store& store, const std::string& lines, const BatchJob& job) {
  const std::string record = record_of(lines);
  return TRY(store.exists(record)) && TRY(read_text(store, record)) == record_text(job);
}

Status check_result_table(Store& store, const std::string& lines, const BatchJob& job, const std::string& shown) {
  std::vector<std::string> names;
  for (const ResultColumn& column : result_columns(job.kind)) names.push_back(column.name);
  for (const CarriedColumn& column : job.columns) names.push_back(column.name);
  const bool has_record = TRY(store.exists(record_of(lines))), is_same = TRY(is_recorded(store, lines, job));
  if (is_same && TRY(names_there(store, job.table, shown)) == names) return {};
  const char* why = has_record && !is_same ? "with other columns than the job says" : "and not of this job";
  return error(ErrorKind::exists, "'{}' is there, {}", shown, why)
      .hinted("move it away, and type the same command again: it is made anew, and no row is computed");
}

}  // namespace systole
