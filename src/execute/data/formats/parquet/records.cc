#include "execute/data/formats/parquet/records.h"

#include <algorithm>
#include <map>
#include <optional>

#include "execute/data/formats/parquet/cell_text.h"
#include "execute/data/formats/parquet/reader.h"
#include "execute/data/formats/parquet/writer.h"
#include "execute/data/formats/partial_file.h"

namespace systole::parquet {
namespace {

class Records : public RecordReader {
 public:
  Records(File file, RecordLimits limits) : file_(std::move(file)), limits_(limits) {}

  Status open() {
    for (const std::size_t i : file_.readable()) names_.push_back(file_.metadata().columns[i].name);
    rows_ = Rows::of(file_, {});
    return Done{};
  }

  Status pass_over(std::span<const FieldComparison> unless) override {
    std::vector<Condition> conditions;
    for (const FieldComparison& comparison : unless) {
      const std::vector<Column>& columns = file_.metadata().columns;
      const auto column = std::ranges::find(columns, comparison.field, &Column::name);
      if (column == columns.end()) continue;
      const auto index = static_cast<std::size_t>(column - columns.begin());
      if (std::optional<Condition> made = condition_of(comparison, *column, index))
        conditions.push_back(std::move(*made));
    }
    rows_ = Rows::of(file_, {}, std::move(conditions));
    return Done{};
  }
  std::int64_t passed_over() const override { return passed_; }

  std::vector<std::string> field_names() override { return names_; }
  std::vector<std::string> left_out() const override {
    std::vector<std::string> all;
    for (const Column& column : file_.metadata().columns)
      if (!column.outside.empty()) all.push_back(fmt::format("column '{}' is {}", column.name, column.outside));
    return all;
  }

  Result<bool> next(DataRecord& record) override {
    const bool more = TRY(rows_->next());
    passed_ = (more ? rows_->row() : file_.metadata().rows) - given_;
    if (!more) return false;
    ++given_;
    const std::vector<Chunk>& chunks = file_.metadata().groups[rows_->group()].chunks;
    record = {rows_->row(), chunks.empty() ? 4 : chunks[0].begin, {}};
    return true;
  }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    const std::size_t index = TRY(column_of(name));
    const Column& column = file_.metadata().columns[index];
    const Cell& cell = rows_->cell(TRY(rows_->cell_of(index)));
    const auto refused = [&](std::string what, const char* hint) {
      return record_error(ErrorKind::invalid, {file_.shown(), record.index, record.byte},
                          fmt::format("column '{}' {}", name, what), hint);
    };
    if (cell.null) return refused("is null here", "`on_bad_record: skip` leaves such rows out");
    if (column.list || cell.values[0].kind != Value::Kind::bytes) {
      return refused(fmt::format("holds {}{}, not texts", column.list ? "lists of " : "", name_of(column.type)),
                     "name a column of texts");
    }
    if (static_cast<std::int64_t>(cell.values[0].bytes.size()) > limits_.largest_record.count())
      return refused(fmt::format("is longer than {} here", to_string(limits_.largest_record)),
                     "raise `largest_document`");
    return cell.values[0].bytes;
  }

  Result<Node> value(const DataRecord&, std::string_view name) override {
    const std::size_t index = TRY(column_of(name));
    return node_of(file_.metadata().columns[index], rows_->cell(TRY(rows_->cell_of(index))));
  }

 private:
  // Asked for each row: File::column goes through all names.
  Result<std::size_t> column_of(std::string_view name) {
    if (const auto known = columns_.find(name); known != columns_.end()) return known->second;
    const std::size_t index = TRY(file_.column(name));
    columns_.emplace(name, index);
    return index;
  }

  File file_;
  RecordLimits limits_;
  std::map<std::string, std::size_t, std::less<>> columns_;  // those that were asked for
  std::vector<std::string> names_;                           // of the columns that can be read
  std::optional<Rows> rows_;
  std::int64_t given_ = 0, passed_ = 0;
};

// A file that appears under its name when it is whole.
class IntoPartial : public WritableFile {
 public:
  explicit IntoPartial(PartialFile& file) : file_(file) {}
  Status append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Status sync() override { return Done{}; }
  Status close() override { return Done{}; }

 private:
  PartialFile& file_;
};

class WrittenRecords : public RecordWriter {
 public:
  explicit WrittenRecords(std::unique_ptr<PartialFile> file) : file_(std::move(file)), into_(*file_) {}

  Status add(std::string_view) override {
    return error(ErrorKind::unsupported, "a row of Parquet has fields, and no bytes of its own");
  }

  Status add_fields(std::span<const RecordField> fields) override {
    if (!writer_) TRY(begin(fields));
    for (Cell& cell : cells_) cell = {};
    for (const RecordField& field : fields) {
      const auto found = std::find(columns_.begin(), columns_.end(), field.name);
      if (found == columns_.end()) {
        return error(ErrorKind::invalid, "row {} has a field '{}', the first row has none",
                     with_commas(writer_->rows()), field.name);
      }
      const auto i = static_cast<std::size_t>(found - columns_.begin());
      values_[i] = Value::of(field.bytes);
      cells_[i] = {false, {&values_[i], 1}};
    }
    return writer_->add(cells_);
  }

  Status finish() override {
    if (!writer_) return error(ErrorKind::invalid, "a Parquet file needs a row, whose fields are its columns");
    TRY(writer_->finish());
    return file_->finish();
  }

 private:
  Status begin(std::span<const RecordField> fields) {
    std::vector<Column> made;
    for (const RecordField& field : fields) {
      Column& column = made.emplace_back();
      column.name = field.name;
      column.meaning = Meaning::text;
      columns_.emplace_back(field.name);
    }
    cells_.resize(made.size());
    values_.resize(made.size());
    writer_ = TRY(Writer::create(into_, std::move(made)));
    return Done{};
  }

  std::unique_ptr<PartialFile> file_;
  IntoPartial into_;
  std::optional<Writer> writer_;
  std::vector<std::string> columns_;
  std::vector<Cell> cells_;
  std::vector<Value> values_;
};

}  // namespace

Result<std::unique_ptr<RecordReader>> open_records(const RecordFile& file, const RecordLimits& limits) {
  auto records = std::make_unique<Records>(TRY(File::open(*file.store, file.path, file.shown)), limits);
  TRY(records->open());
  return std::unique_ptr<RecordReader>(std::move(records));
}

Result<std::unique_ptr<RecordWriter>> create_records(Store& store, const std::string& path) {
  return std::unique_ptr<RecordWriter>(std::make_unique<WrittenRecords>(TRY(PartialFile::create(store, path))));
}

}  // namespace systole::parquet
