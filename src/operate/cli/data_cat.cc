// `systole data cat FILE`: the records of a file as lines of JSON.

#include "operate/cli/data_cat.h"

#include <algorithm>
#include <memory>

#include "execute/data/formats/example.h"
#include "execute/data/formats/field_names.h"
#include "execute/data/formats/record_filter.h"
#include "execute/data/images/image.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/store/object_files.h"
#include "operate/cli/comma_list.h"
#include "operate/run/named_objects.h"
#include "operate/run/store_access.h"

namespace systole::cli {
namespace {

struct DataCatOptions {
  std::string file, columns;  // columns: names with commas between
  std::vector<std::string> where;
  std::int64_t head = std::numeric_limits<std::int64_t>::max();
};

// A file of this machine, or an object of a bucket, of which only the bytes that are needed are read.
struct FileInPlace {
  std::unique_ptr<ObjectStore> objects;  // null: of this machine
  std::unique_ptr<Store> files;
  std::string path;
};
// It stands for its shards.
bool is_folder_of_mds(const std::string& name) { return is_folder(name) && path_exists(name + "/index.json"); }

FileInPlace file_named(const std::string& name) {
  if (is_folder(name) && !is_folder_of_mds(name)) {
    fail(error(ErrorKind::invalid, "'{}' is a folder", name)
             .hinted("name one of its files: systole data ls " + shell_word(name)));
  }
  if (!is_bucket_uri(name)) return {nullptr, open_posix_store("/").value(), lasting_uri(name).value().path.substr(1)};
  NamedObjects found = find_objects(name, store_access()).value();
  if (found.is_folder || found.objects.size() != 1) {
    fail(error(ErrorKind::invalid, "'{}' names {}", name, counted(found.objects.size(), "object"))
             .hinted("name one of them: systole data ls " + name));
  }
  auto files = std::make_unique<ObjectFiles>(*found.place.objects);
  return {std::move(found.place.objects), std::move(files), found.objects[0].path};
}

RecordFormat format_of(const std::string& file) {
  if (is_folder_of_mds(file)) return RecordFormat::mds;
  if (const std::optional<RecordFormat> format = record_format_of(file)) return *format;
  fail(error(ErrorKind::invalid, "its name does not say that it is a file of records")
           .at({file})
           .hinted("names end in .parquet, .tfrecord, .array_record, .tar, .mds, .csv, .npy or .npz; text and JSON "
                   "Lines are read by any viewer"));
}

// All comparisons that every filter needs.
std::vector<FieldComparison> needed_by(const std::vector<RecordFilter>& filters) {
  std::vector<FieldComparison> all;
  for (const RecordFilter& filter : filters)
    for (FieldComparison& comparison : filter.needed()) all.push_back(std::move(comparison));
  return all;
}

// A field's value; of an image its format and size: nobody reads its bytes in a terminal.
Node value_of(RecordReader& reader, const DataRecord& record, std::string_view name) {
  Result<Node> read = reader.value(record, name);
  if (!read.ok()) fail(hinted_as("--columns", name, std::move(read).error()));
  Node value = *std::move(read);
  if (!value.is_map() || value.find("base64") == nullptr) return value;
  const Result<std::string_view> bytes = reader.field(record, name);
  if (!bytes.ok()) return value;
  const std::optional<ImageFormat> format = image_format_of(*bytes);
  if (!format) return value;
  const Result<ImageHeader> header = read_image_header(*bytes);
  const std::string size = counted(bytes->size(), "byte");
  return header.ok() ? fmt::format("{}, {}", to_string(*header), size)
                     : fmt::format("{}, {}: {}", name_of(*format), size, header.error().message);
}

Node all_of(const std::vector<Node>& values) { return values.size() == 1 ? values[0] : Node::sequence(values); }

// The features of a record that is a tf.train.Example; nothing: it is anything else.
std::optional<Node> example_of(RecordReader& reader, const DataRecord& record) {
  const Result<std::vector<Feature>> features = parse_example(record.bytes);
  if (!features.ok() || features->empty()) return std::nullopt;
  Node row = Node::map();
  for (const Feature& feature : *features) {
    std::vector<Node> values;
    for (const std::string_view bytes : feature.bytes) values.push_back(bytes_node(bytes));
    for (const float number : feature.floats) values.emplace_back(static_cast<double>(number));
    for (const std::int64_t number : feature.integers) values.emplace_back(number);
    row.set(std::string(feature.name),
            feature.bytes.size() == 1 ? value_of(reader, record, feature.name) : all_of(values));
  }
  return row;
}

// The record's fields by name, or the record where it has none.
Node row_of(RecordReader& reader, const DataRecord& record, const std::vector<std::string>& columns) {
  const std::vector<std::string> names = columns.empty() ? reader.field_names() : columns;
  if (names.empty()) {
    const std::optional<Node> example = example_of(reader, record);
    return example ? *example : value_of(reader, record, kWholeRecord);
  }
  Node row = Node::map();
  for (const std::string& name : names) row.set(name, value_of(reader, record, name));
  return row;
}

ExitCode data_cat(const DataCatOptions& options, Context& context) {
  std::vector<RecordFilter> filters;
  for (const std::string& text : options.where) filters.push_back(RecordFilter::parse(text).value());
  const NamedRecords records = open_named_records(options.file);
  const std::unique_ptr<RecordReader>& reader = records.reader;
  reader->pass_over(needed_by(filters)).value();
  const std::vector<std::string> columns = comma_list(options.columns);
  Node list = Node::sequence();
  DataRecord record;
  for (std::int64_t given = 0; given < options.head && !context.out.closed() && reader->next(record).value();) {
    const bool kept = std::ranges::all_of(filters, [&](const RecordFilter& filter) {
      Result<bool> keeps = filter.keeps(*reader, record);
      if (!keeps.ok()) fail(at_record(std::move(keeps).error(), {options.file, record.index, record.byte}));
      return *keeps;
    });
    if (!kept) continue;
    ++given;
    Node row = row_of(*reader, record, columns);
    context.out.data(to_json(row));
    if (context.out.json()) list.push(std::move(row));
  }
  context.out.json(Node::map({{"file", options.file}, {"rows", std::move(list)}}));
  if (columns.empty())
    for (const std::string& what : reader->left_out()) context.out.message(what + ": left out");
  return ExitCode::done;
}

}  // namespace

NamedRecords open_named_records(const std::string& name) {
  FileInPlace place = file_named(name);
  const std::string below = is_folder_of_mds(name) ? "/index.json" : "";
  auto reader = open_records({place.files.get(), place.path + below, name + below}, format_of(name)).value();
  return {std::move(place.objects), std::move(place.files), std::move(reader)};
}

Error hinted_as(std::string_view option, std::string_view asked, Error error) {
  if (error.code != ErrorCode::missing_key || !record_format_of(error.where.file)) return error;
  const NamedRecords records = open_named_records(error.where.file);
  DataRecord first;
  const Result<bool> any = records.reader->next(first);
  const std::string likely = any.ok() && *any ? likely_field(asked, records.reader->field_names()) : "";
  if (likely.empty()) return error;
  return std::move(error).hinted(fmt::format("{} {}", option, shell_word(likely)));
}

void add_data_cat(Subcommand group, Context& context) {
  auto options = std::make_shared<DataCatOptions>();
  Subcommand command =
      add_command(group, "cat", "the records of a file, a line of JSON each", options, context, data_cat);
  command
      .add_option("file", options->file,
                  "a file of records: Parquet, CSV, tar, MDS, TFRecord, ...; also of gs:// or s3://")
      .required();
  command.add_option("--head", options->head, "at most so many records").check(at_least(0));
  command.add_option("--columns", options->columns, "only these fields, in this order, with commas between");
  command
      .add_option("--where", options->where,
                  "only records where this holds, as in data.train.where; may be repeated, and all must hold")
      .take_all();
}

}  // namespace systole::cli
