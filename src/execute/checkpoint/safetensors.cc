#include "execute/checkpoint/safetensors.h"

#include <algorithm>
#include <array>

#include "execute/checkpoint/box.h"
#include "ground/base/document.h"
#include "ground/base/nearest.h"
#include "ground/store/git_lfs.h"
#include "ground/store/unfinished_name.h"

namespace systole::checkpoint {

namespace {

constexpr std::int64_t kSizeBytes = 8;
constexpr std::int64_t kHeaderLimit = 100'000'000;  // bytes, as in the reference implementation
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::int64_t kMostValues = 2'000'000;  // per header: 300,000 tensors; its tree takes 300 MB then
constexpr std::size_t kHeaderAlignment = 8;

struct DTypeName {
  const char* name;
  DType dtype;
};
// In the reference implementation's order, which is ascending in size; it writes tensors in descending order.
constexpr std::array<DTypeName, kNumDTypes> kDTypes = {{{"BOOL", DType::boolean},
                                                        {"U8", DType::u8},
                                                        {"I8", DType::i8},
                                                        {"F8_E5M2", DType::f8e5m2},
                                                        {"F8_E4M3", DType::f8e4m3},
                                                        {"F16", DType::f16},
                                                        {"BF16", DType::bf16},
                                                        {"I32", DType::i32},
                                                        {"U32", DType::u32},
                                                        {"F32", DType::f32},
                                                        {"F64", DType::f64},
                                                        {"I64", DType::i64},
                                                        {"U64", DType::u64}}};

std::size_t order_of(DType dtype) {
  const auto found =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeName& one) { return one.dtype == dtype; });
  CHECK(found != kDTypes.end(), "safetensors has no name for {}", name_of(dtype));
  return static_cast<std::size_t>(found - kDTypes.begin());
}

Result<DType> dtype_of(const Node& node, const std::string& tensor) {
  const std::string name = TRY(node.as_string());
  std::string known;
  for (const DTypeName& one : kDTypes) {
    if (one.name == name) return one.dtype;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  }
  return error(ErrorKind::unsupported, "tensor '{}' has the dtype '{}', which Systole does not have", tensor, name)
      .at(node.where())
      .hinted("it reads " + known);
}

Error corrupt(const Node& node, std::string message) {
  return error(ErrorKind::corrupt, "{}", message).at(node.where());
}

Result<SafetensorsEntry> read_entry(const std::string& name, const Node& node, std::int64_t data_bytes) {
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = TRY(dtype_of(*TRY(node.get("dtype")), name));
  const Node *shape = TRY(node.get("shape")), *offsets = TRY(node.get("data_offsets"));
  if (!shape->is_sequence()) return shape->wrong("a list of sizes");
  for (const Node& size : shape->items()) entry.shape.push_back(TRY(size.as_int(0)));
  if (offsets->items().size() != 2)
    return corrupt(*offsets, fmt::format("tensor '{}': data_offsets is not [begin, end]", name));
  entry.begin = TRY(offsets->items()[0].as_int(0));
  entry.end = TRY(offsets->items()[1].as_int(0));
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return corrupt(*offsets, fmt::format("tensor '{}' lies at [{}, {}) of {} bytes of data", name, entry.begin,
                                         entry.end, data_bytes));
  }
  const auto elements = checked_elements(entry.shape);
  const std::int64_t held = (entry.end - entry.begin) / size_of(entry.dtype);
  if (!elements || *elements != held || (entry.end - entry.begin) % size_of(entry.dtype) != 0) {
    return corrupt(*shape, fmt::format("tensor '{}' is {}{} and has {} bytes", name, name_of(entry.dtype),
                                       to_string(entry.shape), entry.end - entry.begin));
  }
  return entry;
}

Status read_metadata(const Node& node, SafetensorsHeader& header) {
  if (!node.is_map()) return node.wrong("a map of texts");
  for (const Node::Entry& entry : node.entries()) {
    if (entry.value.kind() != NodeKind::string) return entry.value.wrong("a text");
    header.metadata.emplace(entry.key, entry.value.text());
  }
  return {};
}

// Checks that the data is covered exactly: no gap that could hide bytes, no byte in two tensors.
Status check_offsets(std::vector<SafetensorsEntry>& tensors, std::int64_t data_bytes, const Node& root) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t at = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    if (tensor.begin != at) {
      return corrupt(
          root,
          fmt::format("tensor '{}' begins at byte {} of the data, {} {}", tensor.name, tensor.begin,
                      tensor.begin < at ? "overlapping the one before, which ends at" : "leaving a gap after", at));
    }
    at = tensor.end;
  }
  if (at != data_bytes)
    return corrupt(root, fmt::format("the tensors end at byte {} of {} bytes of data", at, data_bytes));
  return {};
}

Result<SafetensorsHeader> read_header(std::string_view text, std::int64_t data_start, std::int64_t data_bytes,
                                      std::string_view file) {
  const Node root = TRY(parse_json(text, file, {.depth = 8, .bytes = kHeaderLimit}));
  if (!root.is_map()) return root.wrong("a map of tensors");
  SafetensorsHeader header;
  header.data_start = data_start;
  for (const Node::Entry& entry : root.entries()) {
    if (entry.key == kMetadata) {
      TRY(read_metadata(entry.value, header));
    } else {
      header.tensors.push_back(TRY(read_entry(entry.key, entry.value, data_bytes)));
    }
  }
  TRY(check_offsets(header.tensors, data_bytes, root));
  return header;
}

Result<std::int64_t> header_size(std::span<const std::byte> head, std::int64_t file_bytes, std::string_view file) {
  if (file_bytes < kSizeBytes || static_cast<std::int64_t>(head.size()) < kSizeBytes) {
    return error(ErrorKind::corrupt, "a safetensors file has 8 bytes at least, this one has {}", file_bytes)
        .at({std::string(file)});
  }
  std::uint64_t size = 0;
  for (std::size_t i = kSizeBytes; i-- > 0;) size = size << 8 | std::to_integer<std::uint64_t>(head[i]);
  if (size > static_cast<std::uint64_t>(kHeaderLimit) || size > static_cast<std::uint64_t>(file_bytes - kSizeBytes)) {
    return error(ErrorKind::corrupt, "the header would have {} bytes; the file has {}, and the limit is {}", size,
                 file_bytes, kHeaderLimit)
        .at({std::string(file)})
        .hinted("this may be no safetensors file");
  }
  return static_cast<std::int64_t>(size);
}

}  // namespace

const SafetensorsEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head, std::int64_t file_bytes,
                                                   std::string_view file) {
  const std::int64_t size = TRY(header_size(head, file_bytes, file));
  if (static_cast<std::int64_t>(head.size()) < kSizeBytes + size) {
    return error(ErrorKind::corrupt, "the header ends early: {} bytes of {}", head.size(), kSizeBytes + size)
        .at({std::string(file)});
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kSizeBytes, static_cast<std::size_t>(size));
  if (!text.starts_with('{'))
    return error(ErrorKind::corrupt, "the header does not begin with '{{'").at({std::string(file)});
  if (const auto values = std::count(text.begin(), text.end(), ','); values > kMostValues) {
    return error(ErrorKind::corrupt, "the header has {} values, and no more than {} are read", values, kMostValues)
        .at({std::string(file)})
        .hinted("this is no model: its tensors alone would be 300,000");
  }
  auto header = read_header(text, kSizeBytes + size, file_bytes - kSizeBytes - size, file);
  if (header || header.error().kind == ErrorKind::unsupported) return header;
  Error damaged = std::move(header).error();
  damaged.kind = ErrorKind::corrupt;
  return damaged;
}

SafetensorsFile::SafetensorsFile(Store& store, std::string path, SafetensorsHeader header)
    : store_(&store), path_(std::move(path)), header_(std::make_shared<const SafetensorsHeader>(std::move(header))) {}

Result<SafetensorsFile> SafetensorsFile::open(Store& store, std::string path) {
  TRY(refuse_lfs_pointer(store, path));
  const std::int64_t file_bytes = TRY(store.size(path)).count();
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(file_bytes, kSizeBytes)));
  TRY(store.read(path, 0, head));
  const std::int64_t size = TRY(header_size(head, file_bytes, path));
  head.resize(static_cast<std::size_t>(kSizeBytes + size));
  TRY(store.read(path, kSizeBytes, std::span(head).subspan(kSizeBytes)));
  SafetensorsHeader header = TRY(parse_safetensors_header(head, file_bytes, path));
  return SafetensorsFile(store, std::move(path), std::move(header));
}

Status SafetensorsFile::read(std::string_view name, std::span<std::byte> into) const {
  const SafetensorsEntry* entry = header_->find(name);
  if (entry && entry->end - entry->begin != static_cast<std::int64_t>(into.size())) {
    return error(ErrorKind::invalid, "tensor '{}' has {} bytes, the target {}", name, entry->end - entry->begin,
                 into.size())
        .at({path_});
  }
  return read_elements(name, 0, into);
}

Status SafetensorsFile::read_elements(std::string_view name, std::int64_t first, std::span<std::byte> into) const {
  const SafetensorsEntry* entry = header_->find(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& tensor : header_->tensors) names.push_back(tensor.name);
    return error(ErrorKind::not_found, "there is no tensor '{}'", name).at({path_}).hinted(nearest_hint(name, names));
  }
  const std::int64_t element = size_of(entry->dtype), bytes = static_cast<std::int64_t>(into.size());
  const std::int64_t count = (entry->end - entry->begin) / element;
  if (bytes % element != 0 || first < 0 || bytes / element > count || first > count - bytes / element) {
    return error(ErrorKind::invalid, "tensor '{}' has {} elements; {} bytes from element {} leave it", name, count,
                 bytes, first)
        .at({path_});
  }
  if (into.empty()) return {};
  return store_->read(path_, header_->data_start + entry->begin + first * element, into);
}

// ---- writing

SafetensorsSource SafetensorsSource::of(std::string name, DType dtype, Shape shape, std::span<const std::byte> bytes) {
  return {std::move(name), dtype, std::move(shape), [bytes](const Take& take) { return take(bytes); }};
}

namespace {

Status check_sources(std::span<const SafetensorsSource> tensors) {
  std::vector<std::string_view> names;
  for (const SafetensorsSource& tensor : tensors) {
    if (tensor.name == kMetadata) return error(ErrorKind::invalid, "no tensor may be called '{}'", kMetadata);
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return error(ErrorKind::invalid, "tensor '{}' is given twice", *twice);
  return {};
}

std::string header_text(std::span<const SafetensorsSource> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    Node map = Node::map();
    for (const auto& [key, value] : metadata) map.set(key, value);
    text += fmt::format("\"{}\":{}", kMetadata, to_json(map));
  }
  std::int64_t at = 0;
  for (const SafetensorsSource& tensor : tensors) {
    const std::int64_t end = at + bytes_of(tensor.dtype, tensor.shape).count();
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", text.size() > 1 ? "," : "",
                        to_json(Node(tensor.name)), kDTypes[order_of(tensor.dtype)].name, fmt::join(tensor.shape, ","),
                        at, end);
    at = end;
  }
  text += "}";
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

Status append_header(WritableFile& file, std::string_view text) {
  std::array<std::byte, kSizeBytes> size;
  for (std::size_t i = 0; i < size.size(); ++i) size[i] = static_cast<std::byte>(text.size() >> (8 * i) & 0xff);
  TRY(file.append(size));
  return file.append(std::as_bytes(std::span(text)));
}

Status append_tensor(WritableFile& file, const SafetensorsSource& tensor) {
  const std::int64_t expected = bytes_of(tensor.dtype, tensor.shape).count();
  std::int64_t given = 0;
  TRY(tensor.produce([&](std::span<const std::byte> bytes) -> Status {
    given += static_cast<std::int64_t>(bytes.size());
    if (given > expected) return {};  // reported below, without writing too much
    return file.append(bytes);
  }));
  if (given != expected)
    return error(ErrorKind::invalid, "tensor '{}' takes {} bytes, {} were given", tensor.name, expected, given);
  return {};
}

Status write_file(Store& store, const std::string& path, std::span<const SafetensorsSource> tensors,
                  const std::string& header) {
  auto file = TRY(store.create(path));
  TRY(append_header(*file, header));
  for (const SafetensorsSource& tensor : tensors) TRY(append_tensor(*file, tensor));
  TRY(file->sync());
  return file->close();
}

}  // namespace

Status write_safetensors(Store& store, std::string_view path, std::vector<SafetensorsSource> tensors,
                         const std::map<std::string, std::string>& metadata) {
  TRY(check_sources(tensors));
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const std::size_t left = order_of(a.dtype), right = order_of(b.dtype);
    return left != right ? left > right : a.name < b.name;
  });
  const std::string header = header_text(tensors, metadata);
  if (static_cast<std::int64_t>(header.size()) > kHeaderLimit) {
    return error(ErrorKind::unsupported, "the header takes {} bytes, the format allows {}", header.size(),
                 kHeaderLimit);
  }
  const std::string temporary = unfinished_name(path, ".tmp");
  auto written = write_file(store, temporary, tensors, header);
  if (written) written = store.rename(temporary, path);
  if (!written) {
    static_cast<void>(store.remove(temporary));
    return written;
  }
  const std::size_t slash = path.rfind('/');
  return store.sync_dir(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
}

}  // namespace systole::checkpoint
