// `systole data pack OUT FILES...`: documents or loose files as one file of records.

#include <algorithm>

#include "execute/data/file_patterns.h"
#include "execute/data/pack.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/data_cat.h"
#include "operate/cli/data_pack.h"

namespace systole::cli {
namespace {

struct DataPackOptions {
  std::string to, out, each = "document", document = "line", field = "text", compression;
  std::vector<std::string> files;
  std::int64_t group_size = 1;
  bool plain = false;
};

RecordFormat format_to(const DataPackOptions& options) {
  for (const RecordFormat format : {RecordFormat::tfrecord, RecordFormat::array_record, RecordFormat::webdataset,
                                    RecordFormat::mds, RecordFormat::csv, RecordFormat::parquet})
    if (options.to == name_of(format)) return format;
  const std::optional<RecordFormat> format = record_format_of(options.out);
  if (format) return *format;
  fail(error(ErrorKind::invalid, "'{}' does not say which format to write", options.out)
           .hinted("a name that ends in .tfrecord, .array_record, .tar, .csv or .parquet, or --to mds"));
}

// Sets what --compression says. Errors: invalid, where the format has no such.
void set_compression(const DataPackOptions& options, PackOptions& packing) {
  if (options.compression.empty()) return;
  const bool tfrecord = packing.to == RecordFormat::tfrecord;
  const bool by_name = packing.to == RecordFormat::webdataset || packing.to == RecordFormat::csv;
  if (by_name) {
    fail(error(ErrorKind::invalid, "--compression {}: the name of the file says it", options.compression)
             .hinted(fmt::format("name it {}.gz or {}.zst", options.out, options.out)));
  }
  if (packing.to == RecordFormat::parquet) {
    fail(error(ErrorKind::invalid, "--compression {}: Parquet is written with Snappy", options.compression)
             .hinted("leave --compression out"));
  }
  const std::vector<std::string> known =
      tfrecord ? std::vector<std::string>{"none", "gzip", "zlib"} : std::vector<std::string>{"zstd", "none"};
  const auto found = std::find(known.begin(), known.end(), options.compression);
  if (found == known.end()) {
    fail(error(ErrorKind::invalid, "--compression {}: {} has no such", options.compression, name_of(packing.to))
             .hinted(fmt::format("--compression {}", fmt::join(known, " | "))));
  }
  if (tfrecord) packing.compression = static_cast<TfrecordCompression>(found - known.begin());
  if (!tfrecord && options.compression == "none") packing.array.zstd_level = 0;
  packing.zipped = packing.to == RecordFormat::mds && options.compression == "zstd";
}

PackOptions packing_of(const DataPackOptions& options, Context& context) {
  PackOptions packing{.to = format_to(options)};
  packing.whole_files = options.each == "file";
  packing.plain = options.plain;
  packing.array.group_size = options.group_size;
  packing.text.field = options.field;
  packing.text.document = options.document == "line"         ? DocumentRule::line
                          : options.document == "blank_line" ? DocumentRule::blank_line
                                                             : DocumentRule::file;
  set_compression(options, packing);
  packing.progress = [&context](Bytes done) { context.out.progress(fmt::format("packing  {}", to_string(done))); };
  return packing;
}

ExitCode data_pack(const DataPackOptions& options, Context& context) {
  const PackOptions packing = packing_of(options, context);
  const std::unique_ptr<Store> root = open_posix_store("/").value();
  std::vector<std::string> below;
  for (const std::string& file : options.files) {
    if (is_folder(file)) fail(folder_for_files(file, packing.whole_files ? "" : ".txt"));
    below.push_back(below_root(file).value());
  }
  const TextFiles files{root.get(), expand_files(*root, below, "/").value(), "/"};
  Result<Packed> made = pack_records(files, *root, below_root(options.out).value(), packing);
  if (!made.ok()) fail(hinted_as("--field", options.field, std::move(made).error()));
  const Packed& packed = *made;
  context.out.end_progress();
  context.out.data(fmt::format("{}: {} of {}, {} for {} of data", options.out, counted(packed.records, "record"),
                               counted(packed.files, "file"), to_string(packed.written), to_string(packed.bytes)));
  context.out.json(Node::map({{"out", options.out},
                              {"format", name_of(packing.to)},
                              {"files", packed.files},
                              {"records", packed.records},
                              {"skipped_records", packed.skipped},
                              {"data_bytes", packed.bytes.count()},
                              {"bytes", packed.written.count()}}));
  return ExitCode::done;
}

}  // namespace

void add_data_pack(Subcommand group, Context& context) {
  auto options = std::make_shared<DataPackOptions>();
  Subcommand command =
      add_command(group, "pack", "documents or loose files as one file of records", options, context, data_pack);
  command
      .add_option("out", options->out,
                  "the file to make: x.tfrecord, x.array_record, x.tar, x.csv or x.parquet; for mds a folder")
      .required();
  command
      .add_option("files", options->files,
                  "files or patterns: text, JSON Lines, records; with --each file, files of any kind")
      .required();
  command.add_option("--to", options->to, "the format, where the file's name does not say it")
      .check(one_of({"tfrecord", "array_record", "webdataset", "mds", "csv", "parquet"}));
  command.add_option("--each", options->each, "what becomes a record: a document, or a file with its name and bytes")
      .check(one_of({"document", "file"}))
      .capture_default_str();
  command.add_option("--document", options->document, "where a document of plain text ends")
      .check(one_of({"line", "blank_line", "file"}))
      .capture_default_str();
  command.add_option("--field", options->field, "the field with the text: of what is read, and of the Example written")
      .capture_default_str();
  command.add_flag("--plain", options->plain, "a record is the bytes alone, not a tf.train.Example");
  command
      .add_option("--group-size", options->group_size,
                  "ArrayRecord: records compressed together; 1 to read them at random, hundreds to read them in order")
      .check(at_least(1))
      .capture_default_str();
  command.add_option(
      "--compression", options->compression,
      "of a TFRecord none (as usual), gzip or zlib, of an ArrayRecord zstd (as usual) or none, of mds zstd");
}

}  // namespace systole::cli
