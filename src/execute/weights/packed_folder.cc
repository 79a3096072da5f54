#include "execute/weights/packed_folder.h"

#include <algorithm>
#include <filesystem>

#include "describe/ir/served_adapters.h"
#include "describe/partition/serving.h"
#include "execute/data/tokenizer_files.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/number_from.h"
#include "ground/base/parallel.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

using checkpoint::SafetensorsEntry;
using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsSource;

constexpr const char* kFormat = "systole-packed";
constexpr int kVersion = 2, kInt8Version = 1;  // 2: weights in int4, which readers of 1 do not know
constexpr const char* kBeginsWithBos = "begins_with_bos";
constexpr const char* kAgain =
    "make the folder again: systole quantize MODEL --out FOLDER, with the --weights that it had";
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
constexpr Bytes kLargestFile = kMiB * 256;  // of those beside the weights, as tokenizers are read

// What a folder's readers look at beside its weights: hf_folder.h, data/tokenizer_files.h, pooling_files.h.
constexpr const char* kPooling = "1_Pooling";
constexpr const char* kFiles[] = {kHfConfig,
                                  kHfChatTemplate,
                                  "generation_config.json",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "tokenizer.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "vocab.txt",
                                  "tokenizer.model",
                                  "spiece.model",
                                  "modules.json",
                                  "1_Pooling/config.json"};

SafetensorsSource source_of(Executor& executor, int v) {
  const ProgramValue& value = executor.program().values[static_cast<std::size_t>(v)];
  return {value.name, value.type.dtype, value.type.shape,
          [&executor, v, size = value.type.bytes()](const SafetensorsSource::Take& take) -> Status {
            if (const std::span<std::byte> seen = executor.view(v, 0); !seen.empty()) return take(seen);
            std::vector<std::byte> copy(static_cast<std::size_t>(size.count()));
            TRY(executor.read(v, 0, copy));
            return take(copy);
          }};
}

Status write_other_files(const HfFolder& from, const Tokenizer& tokenizer, Store& to) {
  for (const char* name : kFiles) {
    if (!TRY(from.store->exists(name))) continue;
    if (std::string_view(name).starts_with(kPooling)) TRY(make_dirs_synced(to, kPooling));
    TRY(write_whole(to, name, TRY(read_all(*from.store, name, kLargestFile))));
  }
  if (is_gguf(from.path)) TRY(write_hf_tokenizer(tokenizer, to));
  return {};
}

Status check_metadata(const std::map<std::string, std::string>& metadata) {
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  const std::optional<std::int64_t> version = number_from(text("version"));
  if (text("format") != kFormat || !version || *version < 1)
    return error(ErrorKind::corrupt, "this is no file of packed weights: its header has no format '{}'", kFormat);
  if (*version > kVersion) {
    return error(ErrorKind::unsupported, "these weights are packed in version {}; this Systole reads up to version {}",
                 *version, kVersion)
        .coded(ErrorCode::newer_version)
        .hinted("use the Systole that wrote it or a newer one");
  }
  return {};
}

Error damaged(Error bad) {
  if (bad.kind == ErrorKind::corrupt) bad.hint = kAgain;
  return bad;
}

// The part of a tensor that a device holds: all of it, or one of equal parts of one dim.
struct Part {
  int dim = 0;
  std::int64_t index = 0, count = 1;

  static Part of(const ProgramValue& value, const Mesh& mesh, std::int64_t device) {
    if (!value.cut || !value.cut->layout.cut()) return {};
    CHECK(mesh.axes().size() == 1, "a packed folder is read over a mesh of {} axes", mesh.axes().size());
    return {value.cut->layout.at[0], device, mesh.num_devices()};
  }
};

const Type& whole_type(const ProgramValue& value) { return value.cut ? value.cut->whole : value.type; }

// A tensor's part, of which each index of the dims before the cut one has one piece or more.
Status read_part(const SafetensorsFile& file, const SafetensorsEntry& entry, const Part& part,
                 std::span<std::byte> into) {
  std::int64_t runs = 1;
  for (int d = 0; part.count > 1 && d < part.dim; ++d) runs *= entry.shape[static_cast<std::size_t>(d)];
  const std::int64_t run = std::ssize(into) / std::max<std::int64_t>(runs, 1);  // bytes
  const std::int64_t each = (run + kPieceBytes - 1) / kPieceBytes;              // pieces
  return for_each_in_parallel(static_cast<std::size_t>(runs * each), io_threads(), [&](std::size_t i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / each,
                       first = static_cast<std::int64_t>(i) % each * kPieceBytes;
    const std::int64_t size = std::min(kPieceBytes, run - first);
    const std::int64_t from = (at * part.count + part.index) * run + first;
    return file.read_elements(entry.name, from / size_of(entry.dtype),
                              into.subspan(static_cast<std::size_t>(at * run + first), static_cast<std::size_t>(size)));
  });
}

// f32[rows, columns] of a weight in int8, or some of its rows. Nothing: the file has no such weight.
Result<bool> read_widened(const SafetensorsFile& file, const ProgramValue& value, const Part& part,
                          std::span<std::byte> into) {
  Int8Weight weight;
  weight.from.name = value.name;
  const SafetensorsEntry *q8 = file.header().find(weight.q8_name()), *scale = file.header().find(weight.scale_name());
  const Shape& shape = whole_type(value).shape;
  if (part.dim != 0 || q8 == nullptr || scale == nullptr || value.type.dtype != DType::f32 || shape.size() != 2 ||
      q8->dtype != DType::i8 || q8->shape != shape || scale->dtype != DType::f32 || scale->shape != Shape{shape[0]})
    return false;
  const auto rows = static_cast<std::size_t>(shape[0] / part.count), columns = static_cast<std::size_t>(shape[1]);
  std::vector<std::int8_t> numbers(rows * columns);
  std::vector<float> scales(rows);
  TRY(read_part(file, *q8, part, std::as_writable_bytes(std::span(numbers))));
  TRY(read_part(file, *scale, part, std::as_writable_bytes(std::span(scales))));
  const std::span<float> wide(reinterpret_cast<float*>(into.data()), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) wide[i] = scales[i / columns] * static_cast<float>(numbers[i]);
  return true;
}

Status read_value(const SafetensorsFile& file, const ProgramValue& value, const Part& part, std::span<std::byte> into) {
  const Type& whole = whole_type(value);
  const SafetensorsEntry* const entry = file.header().find(value.name);
  if (entry == nullptr) {
    if (TRY(read_widened(file, value, part, into))) return {};
    return error(ErrorKind::corrupt, "there is no tensor '{}' ({}), which the model of config.json has", value.name,
                 to_string(whole))
        .at({kPackedWeights});
  }
  if (entry->dtype == whole.dtype && entry->shape == whole.shape) return read_part(file, *entry, part, into);
  return error(ErrorKind::corrupt, "tensor '{}' is {}{}, the model of config.json makes it {}", value.name,
               name_of(entry->dtype), to_string(entry->shape), to_string(whole))
      .at({kPackedWeights});
}

}  // namespace

bool is_packed_folder(const std::string& path) {
  return !path.empty() && is_file(std::filesystem::path(path) / kPackedWeights);
}

Result<Bytes> write_packed_folder(Executor& executor, HfFolder& from, const Tokenizer& tokenizer, Store& to,
                                  DType parameter) {
  const std::string source = TRY(from.hash());
  std::map<std::string, std::string> metadata = {
      {"format", kFormat},
      {"version", std::to_string(parameter == kInt4 ? kVersion : kInt8Version)},
      {"weights", packed_name(parameter)},
      {"source_hash", source}};
  if (is_gguf(from.path)) metadata.emplace(kBeginsWithBos, tokenizer.before().empty() ? "false" : "true");
  std::vector<SafetensorsSource> sources;
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    if (values[static_cast<std::size_t>(v)].residence == Residence::parameter)
      sources.push_back(source_of(executor, v));
  }
  TRY(checkpoint::write_safetensors(to, kPackedWeights, std::move(sources), metadata));
  TRY(write_other_files(from, tokenizer, to));
  return to.size(kPackedWeights);
}

Result<PackedFolder> open_packed_folder(const std::string& path) {
  HfFolder folder;
  folder.path = path;
  folder.store = TRY(open_posix_store(path));
  auto file = SafetensorsFile::open(*folder.store, kPackedWeights);
  if (!file.ok()) return below(path, damaged(std::move(file).error()));
  if (Status fits = check_metadata(file->header().metadata); !fits.ok())
    return damaged(std::move(fits).error()).at({path + "/" + kPackedWeights});
  const auto weights = file->header().metadata.find("weights");
  const std::string kind = weights == file->header().metadata.end() ? "int8" : weights->second;
  if (kind != "int8" && kind != "int4") {
    return error(ErrorKind::unsupported, "its weights are in '{}', and int8 and int4 are read", kind)
        .at({path + "/" + kPackedWeights})
        .hinted(kAgain);
  }
  return PackedFolder{std::move(folder), *std::move(file), packed_type(kind)};
}

Result<Tokenizer> tokenizer_of(const PackedFolder& packed, const ModelSpec& model) {
  const auto& metadata = packed.file.header().metadata;
  const auto begins = metadata.find(kBeginsWithBos);
  if (begins == metadata.end()) return tokenizer_of(packed.folder, model);
  auto bytes = read_tokenizer(*packed.folder.store, "");
  if (!bytes.ok()) return below(packed.folder.path, std::move(bytes).error());
  auto tokenizer = Tokenizer::load_foreign(*std::move(bytes), begins->second == "true");
  if (!tokenizer.ok()) return std::move(tokenizer).error().at({packed.folder.path});
  return tokenizer;
}

Status load_packed(Executor& executor, const PackedFolder& packed, std::int64_t device) {
  const Mesh& mesh = executor.program().mesh;
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    if (value.residence != Residence::parameter || is_served_adapter(value.name)) continue;
    std::span<std::byte> into = executor.view(v, 0);
    std::vector<std::byte> staged;
    if (into.empty()) {
      staged.resize(static_cast<std::size_t>(value.type.bytes().count()));
      into = staged;
    }
    if (Status read = read_value(packed.file, value, Part::of(value, mesh, device), into); !read.ok())
      return below(packed.folder.path, damaged(std::move(read).error()));
    if (!staged.empty()) TRY(executor.write(v, 0, staged));
  }
  return {};
}

}  // namespace systole
