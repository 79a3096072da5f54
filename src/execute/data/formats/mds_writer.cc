// Writes MDS shards (mds.h).

#include <fmt/ranges.h>

#include <algorithm>

#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/mds.h"
#include "execute/data/formats/mds_columns.h"

namespace systole {
namespace {

void put_u32(std::string& bytes, std::size_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// JSON as Python's json.dumps writes it. Names have no character that it would escape.
std::string json_list(const std::vector<MdsColumn>& columns, std::string (*item)(const MdsColumn&)) {
  std::vector<std::string> items;
  for (const MdsColumn& column : columns) items.push_back(item(column));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// In the folder from before the first shard until the index is there: what else is in it is of a writer that was killed.
constexpr std::string_view kMark = ".systole-unfinished";

class MdsWriter : public RecordWriter {
 public:
  MdsWriter(Store& store, std::string folder, MdsOptions options)
      : store_(store), folder_(std::move(folder)), options_(std::move(options)) {}

  Status add(std::string_view record) override {
    const RecordField field{"bytes", record};
    return add_fields(std::span(&field, 1));
  }

  Status add_fields(std::span<const RecordField> fields) override {
    if (columns_.empty()) TRY(set_columns(fields));
    std::string sample, body;
    for (const MdsColumn& column : columns_) {
      const auto field = std::ranges::find(fields, column.name, &RecordField::name);
      if (field == fields.end()) return wrong(fmt::format("the record has no field '{}'", column.name));
      const Result<std::string_view> value = encode_mds(column.encoding, field->bytes, scratch_);
      if (!value.ok()) return wrong(fmt::format("column '{}': {}", column.name, value.error().message));
      if (column.size < 0) put_u32(sample, value->size());
      body += *value;
    }
    if (fields.size() != columns_.size())
      return wrong(fmt::format("the record has {} fields, and there are {} columns", fields.size(), columns_.size()));
    sample += body;
    const auto size = static_cast<std::int64_t>(sample.size()) + 4;
    if (shard_bytes_ + size > std::numeric_limits<std::uint32_t>::max() && samples_.empty())
      return wrong("the record is too long for a shard, whose offsets have 32 bits");
    if (shard_bytes_ + size > options_.shard_bytes && !samples_.empty()) TRY(flush());
    samples_.push_back(static_cast<std::uint32_t>(sample.size()));
    data_ += sample;
    shard_bytes_ += size;
    ++records_;
    return Done{};
  }

  Status finish() override {
    if (!samples_.empty()) TRY(flush());
    TRY(write_whole(store_, in_folder("index.json"),
                    fmt::format("{{\"shards\": [{}], \"version\": 2}}", fmt::join(shards_, ", "))));
    return store_.remove(in_folder(kMark));
  }

  Status set_columns(std::span<const RecordField> fields) {
    auto columns = options_.columns;
    if (columns.empty())
      for (const RecordField& field : fields) columns.emplace_back(std::string(field.name), "bytes");
    std::ranges::sort(columns);
    for (const auto& [name, encoding] : columns) {
      const bool plain =
          std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
      if (name.empty() || !plain || (!columns_.empty() && columns_.back().name == name))
        return wrong(fmt::format("'{}' cannot be a column: names are of ASCII and once each", name));
      const std::int64_t size = TRY(size_of_mds(encoding));
      columns_.push_back({name, encoding, size});
    }
    if (columns_.empty()) return wrong("a record without fields");
    config_ = fmt::format("{{{}, {}}}", columns_json(), kind_json());
    reset();
    return Done{};
  }

 private:
  Error wrong(std::string what) const { return record_error(ErrorKind::invalid, {folder_, records_, -1}, what); }
  std::string in_folder(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }
  bool zipped() const { return options_.compression == Compression::zstd; }
  std::string columns_json() const {
    return fmt::format("\"column_encodings\": {}, \"column_names\": {}, \"column_sizes\": {}",
                       json_list(columns_, [](const MdsColumn& column) { return "\"" + column.encoding + "\""; }),
                       json_list(columns_, [](const MdsColumn& column) { return "\"" + column.name + "\""; }),
                       json_list(columns_, [](const MdsColumn& column) {
                         return column.size < 0 ? "null" : std::to_string(column.size);
                       }));
  }
  std::string compression_json() const {
    return fmt::format("\"compression\": {}, \"format\": \"mds\", \"hashes\": []", zipped() ? "\"zstd\"" : "null");
  }
  std::string kind_json() const {
    return fmt::format("{}, \"size_limit\": {}, \"version\": 2", compression_json(), options_.shard_bytes);
  }
  void reset() {
    samples_.clear();
    data_.clear();
    shard_bytes_ = 8 + static_cast<std::int64_t>(config_.size());
  }

  Status flush() {
    std::string shard;
    put_u32(shard, samples_.size());
    std::size_t at = 4 + 4 * (samples_.size() + 1) + config_.size();
    put_u32(shard, at);
    for (const std::uint32_t size : samples_) put_u32(shard, at += size);
    shard += config_;
    shard += data_;
    const std::string name = fmt::format("shard.{:05}.mds", shards_.size());
    const auto about = [](const std::string& file, std::size_t bytes) {
      return fmt::format("{{\"basename\": \"{}\", \"bytes\": {}, \"hashes\": {{}}}}", file, bytes);
    };
    std::string zip = "null";
    const std::string file = zipped() ? name + ".zstd" : name;
    if (zipped()) {
      const std::string small = zstd_bytes(shard);
      zip = about(file, small.size());
      TRY(write_whole(store_, in_folder(file), small));
    } else {
      TRY(write_whole(store_, in_folder(file), shard));
    }
    shards_.push_back(fmt::format(
        "{{{}, {}, \"raw_data\": {}, \"samples\": {}, \"size_limit\": {}, \"version\": 2, \"zip_data\": {}}}",
        columns_json(), compression_json(), about(name, shard.size()), samples_.size(), options_.shard_bytes, zip));
    reset();
    return Done{};
  }

  Store& store_;
  std::string folder_;
  MdsOptions options_;
  std::vector<MdsColumn> columns_;
  std::string config_, data_, scratch_;
  std::vector<std::uint32_t> samples_;  // the sizes of those in data_
  std::vector<std::string> shards_;     // what index.json says of each
  std::int64_t shard_bytes_ = 0, records_ = 0;
};

// Whether a writer that was killed may have left a file of this name.
bool is_leftover(std::string_view name) {
  const std::string_view shown = name.starts_with('.') ? name.substr(1) : name;
  return !name.ends_with('/') && (name == kMark || shown.starts_with("shard.") || shown.starts_with("index.json."));
}

// Makes the folder, marks it and removes what a writer that was killed left there.
Status clear_folder(Store& store, const std::string& folder) {
  TRY(make_dirs_synced(store, folder));
  const auto taken = [&](std::string what) {
    return error(ErrorKind::exists, "{}", what).at({folder}).hinted("name another folder, or empty this one first");
  };
  if (TRY(store.exists(folder + "/index.json"))) return taken("there is an MDS dataset already");
  const std::string mark = fmt::format("{}/{}", folder, kMark);
  const bool marked = TRY(store.exists(mark));
  const std::vector<std::string> names = TRY(store.list(folder));
  for (const std::string& name : names)
    if (!marked || !is_leftover(name)) return taken(fmt::format("the folder is not empty: it has '{}'", name));
  for (const std::string& name : names)
    if (name != kMark) TRY(store.remove(folder + "/" + name));
  if (!marked) TRY(TRY(store.create(mark))->close());
  return store.sync_dir(folder);
}

}  // namespace

Result<std::unique_ptr<RecordWriter>> create_mds(Store& store, const std::string& folder, MdsOptions options) {
  const bool named = !options.columns.empty();
  auto writer = std::make_unique<MdsWriter>(store, folder, std::move(options));
  if (named) TRY(writer->set_columns({}));
  TRY(clear_folder(store, folder));
  return std::unique_ptr<RecordWriter>(std::move(writer));
}

}  // namespace systole
