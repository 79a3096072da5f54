#include "execute/data/formats/mds_index.h"

#include <cstring>

#include "execute/data/formats/byte_window.h"
#include "ground/base/document.h"

namespace systole {
namespace {

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 32) - 1;  // offsets have 32 bits

Result<std::string> text_of(const Node& map, std::string_view key) {
  const Node* value = TRY(map.get(key));
  return TRY(value->as_string());
}

struct MdsFile {
  std::string name;
  std::int64_t bytes = 0;
};
// `null`, or absent: no name.
Result<MdsFile> file_of(const Node& shard, std::string_view key) {
  const Node* file = shard.find(key);
  if (file == nullptr || file->is_null()) return MdsFile{};
  MdsFile found;
  found.name = TRY(text_of(*file, "basename"));
  found.bytes = TRY(TRY(file->get("bytes"))->as_int(0, kMostBytes));
  return found;
}

Result<std::vector<MdsColumn>> columns_of(const Node& shard) {
  const Node* names = TRY(shard.get("column_names"));
  const Node* encodings = TRY(shard.get("column_encodings"));
  const Node* sizes = TRY(shard.get("column_sizes"));
  if (names->items().size() != encodings->items().size() || names->items().size() != sizes->items().size() ||
      names->items().empty())
    return error(ErrorKind::invalid, "column_names, column_encodings and column_sizes differ in length")
        .at(names->where());
  std::vector<MdsColumn> columns;
  for (std::size_t i = 0; i < names->items().size(); ++i) {
    MdsColumn column{TRY(names->items()[i].as_string()), TRY(encodings->items()[i].as_string())};
    const Node& size = sizes->items()[i];
    if (!size.is_null()) column.size = TRY(size.as_int(0, kMostBytes));
    // Pickles, and encodings of versions to come, are refused where such a column is asked for.
    if (const Result<std::int64_t> own = size_of_mds(column.encoding); own.ok() && *own >= 0 && *own != column.size)
      return error(ErrorKind::invalid, "the column '{}' is of {}, {} bytes, and the index says otherwise", column.name,
                   column.encoding, *own)
          .at(size.where());
    columns.push_back(std::move(column));
  }
  return columns;
}

Status check_version(const Node& node) {
  const std::string format = TRY(text_of(node, "format"));
  const std::int64_t version = TRY(TRY(node.get("version"))->as_int());
  if (format == "mds" && version == 2) return Done{};
  return error(ErrorKind::unsupported, "a shard of format '{}' version {}; version 2 of mds is read", format, version)
      .at(node.where());
}

Result<MdsShard> shard_of(const Node& node) {
  TRY(check_version(node));
  MdsShard shard;
  MdsFile raw = TRY(file_of(node, "raw_data")), zip = TRY(file_of(node, "zip_data"));
  if (raw.name.empty()) return error(ErrorKind::invalid, "a shard without raw_data").at(node.where());
  shard.raw = std::move(raw.name);
  shard.raw_bytes = raw.bytes;
  shard.zip = std::move(zip.name);
  shard.zip_bytes = zip.bytes;
  shard.compression = node.text_at("compression");
  shard.samples = TRY(TRY(node.get("samples"))->as_int(0, kMostBytes / 4));
  shard.columns = TRY(columns_of(node));
  return shard;
}

}  // namespace

Result<std::vector<MdsShard>> read_mds_index(const RecordFile& index) {
  const Result<std::string> text = read_text(*index.store, index.path, Bytes(std::int64_t{1} << 28));
  if (!text.ok()) return Error(text.error()).at({index.shown});
  const Node root = TRY(parse_json(*text, index.shown));
  const std::int64_t version = TRY(TRY(root.get("version"))->as_int());
  if (version != 2)
    return error(ErrorKind::unsupported, "an MDS index of version {}; version 2 is read", version).at(root.where());
  const Node* shards = TRY(root.get("shards"));
  if (!shards->is_sequence()) return shards->wrong("the list of shards");
  std::vector<MdsShard> found;
  for (const Node& shard : shards->items()) found.push_back(TRY(shard_of(shard)));
  return found;
}

Result<MdsShard> read_mds_shard(const RecordFile& file) {
  MdsShard shard;
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  Compression compression = Compression::none;
  for (const auto& [ending, kind] : {std::pair(".zstd", Compression::zstd), std::pair(".gz", Compression::gzip)}) {
    if (!name.ends_with(ending)) continue;
    compression = kind;
    shard.compression = std::string(ending).substr(1);
    shard.zip = name;
  }
  shard.raw = name.substr(0, name.size() - (shard.zip.empty() ? 0 : shard.compression.size() + 1));
  const std::unique_ptr<ByteWindow> window = TRY(ByteWindow::open(file, compression));
  const auto wrong = [&](std::string_view what) {
    return record_error(ErrorKind::corrupt, {file.shown, -1, 0}, fmt::format("no shard of MDS: {}", what),
                        "name the shards (*.mds), or the folder with their index.json");
  };
  const auto u32 = [](std::string_view bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return std::int64_t{value};
  };
  std::string_view bytes = TRY(window->bytes(0, 8));
  if (bytes.size() < 8) return wrong("it is too short");
  shard.samples = u32(bytes, 0);
  const std::int64_t table = 4 * (shard.samples + 2), first = u32(bytes, 4);
  constexpr std::int64_t kMostConfig = 16 << 20;
  if (first < table || first - table > kMostConfig) return wrong("its offsets lead out of it");
  bytes = TRY(window->bytes(0, first));
  if (static_cast<std::int64_t>(bytes.size()) < first) return wrong("it ends before its first sample");
  shard.raw_bytes = u32(bytes, static_cast<std::size_t>(table) - 4);
  shard.zip_bytes = window->file_size();
  const Result<Node> config = parse_json(bytes.substr(static_cast<std::size_t>(table)), file.shown);
  if (!config.ok()) return wrong(config.error().message);
  TRY(check_version(*config));
  shard.columns = TRY(columns_of(*config));
  return shard;
}

}  // namespace systole
