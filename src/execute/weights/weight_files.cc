#include "execute/weights/weight_files.h"

#include <algorithm>
#include <set>

#include "ground/base/document.h"
#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr Bytes kLargestIndex = kMiB * 64;

// tensor → file, from the index.
Result<std::map<std::string, std::string>> read_index(Store& store, const std::string& path) {
  TRY(refuse_lfs_pointer(store, path));
  const auto parsed = parse_json(TRY(read_text(store, path, kLargestIndex)), path);
  if (!parsed.ok()) {
    Error bad = parsed.error();
    bad.kind = ErrorKind::corrupt;
    return bad;
  }
  const Node* map = parsed->find("weight_map");
  if (map == nullptr || !map->is_map() || map->entries().empty())
    return error(ErrorKind::corrupt, "this index has no weight_map").at({path});
  std::map<std::string, std::string> files;
  for (const Node::Entry& entry : map->entries()) {
    const std::string file = TRY(entry.value.as_string());
    if (file.empty() || file.find('/') != file.npos || file.starts_with('.')) {
      return error(ErrorKind::corrupt, "tensor '{}' would lie in '{}', which is no name of a file in this folder",
                   entry.key, file)
          .at(entry.value.where());
    }
    files.emplace(entry.key, file);
  }
  return files;
}

Status hash_file(Store& store, const std::string& path, Hasher& hasher) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  const std::int64_t size = TRY(store.size(path)).count();
  hasher.add(std::as_bytes(std::span(path)));
  for (std::int64_t at = 0; at < size;) {
    const auto part = std::span(buffer).first(
        static_cast<std::size_t>(std::min(static_cast<std::int64_t>(buffer.size()), size - at)));
    TRY(store.read(path, at, part));
    hasher.add(part);
    at += static_cast<std::int64_t>(part.size());
  }
  return {};
}

}  // namespace

void to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (dtype == DType::f32) {
      __builtin_memcpy(&numbers[i], bytes.data() + i * 4, 4);
    } else if (dtype == DType::bf16) {
      std::uint16_t bits;
      __builtin_memcpy(&bits, bytes.data() + i * 2, sizeof bits);
      numbers[i] = from_bf16(bits);
    } else {
      numbers[i] = static_cast<float>(load(dtype, bytes.data(), static_cast<std::int64_t>(i)));
    }
  }
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

WeightFiles::WeightFiles(Store& store, std::string path, std::map<std::string, WeightTensor> tensors,
                         std::shared_ptr<const TensorReader> reader)
    : store_(&store), paths_{std::move(path)}, tensors_(std::move(tensors)), reader_(std::move(reader)) {}

Status WeightFiles::add(Store& store, const std::string& folder, const std::string& file) {
  paths_.push_back(in_folder(folder, file));
  files_.push_back(TRY(checkpoint::SafetensorsFile::open(store, paths_.back())));
  for (const checkpoint::SafetensorsEntry& entry : files_.back().header().tensors) {
    if (!tensors_.emplace(entry.name, WeightTensor{entry.dtype, entry.shape, files_.size() - 1}).second)
      return error(ErrorKind::corrupt, "tensor '{}' stands in two files", entry.name).at({paths_.back()});
  }
  return {};
}

Result<WeightFiles> WeightFiles::open(Store& store, const std::string& folder) {
  WeightFiles weights;
  weights.store_ = &store;
  const std::string index_path = in_folder(folder, kIndex);
  for (const char* other : {"config.json", kIndex}) {
    if (TRY(store.exists(in_folder(folder, other)))) weights.others_.push_back(in_folder(folder, other));
  }
  if (TRY(store.exists(in_folder(folder, kWhole)))) {
    TRY(weights.add(store, folder, kWhole));
    return weights;
  }
  if (TRY(store.exists(in_folder(folder, kPackedWeights)))) {
    return error(ErrorKind::unsupported, "these weights are packed in int8: they are served, and nothing else")
        .at({in_folder(folder, kPackedWeights)})
        .hinted("name the folder or the GGUF file that they were made of");
  }
  if (!TRY(store.exists(index_path))) {
    return error(ErrorKind::not_found, "there are no weights: neither {} nor {}", kWhole, kIndex)
        .at({folder})
        .hinted("name the folder of a Hugging Face model in safetensors; pytorch_model.bin is not read");
  }
  const std::map<std::string, std::string> index = TRY(read_index(store, index_path));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) files.insert(file);
  for (const std::string& file : files) TRY(weights.add(store, folder, file));
  for (const auto& [tensor, file] : index) {
    const auto found = weights.tensors_.find(tensor);
    if (found == weights.tensors_.end() || weights.paths_[found->second.file] != in_folder(folder, file))
      return error(ErrorKind::corrupt, "tensor '{}' is not in '{}', where the index has it", tensor, file)
          .at({index_path});
  }
  for (const auto& [name, tensor] : weights.tensors_) {
    if (!index.contains(name))
      return error(ErrorKind::corrupt, "tensor '{}' is not in the index", name).at({weights.paths_[tensor.file]});
  }
  return weights;
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

Status WeightFiles::read_elements(const std::string& name, std::int64_t first, std::span<std::byte> into) const {
  if (reader_) return reader_->read_elements(name, first, into);
  return files_[tensors_.at(name).file].read_elements(name, first, into);
}

StoredRows WeightFiles::rows(const std::string& name) const {
  if (reader_) return reader_->rows(name);
  const WeightTensor& tensor = tensors_.at(name);
  return {[this, name, tensor](std::int64_t first, std::int64_t last, const TakeRow& take) -> Status {
    const auto width = static_cast<std::size_t>(tensor.shape[1]);
    const std::size_t bytes = width * static_cast<std::size_t>(size_of(tensor.dtype));
    const auto raw = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(last - first) * bytes);
    TRY(read_elements(name, first * tensor.shape[1], {raw.get(), static_cast<std::size_t>(last - first) * bytes}));
    std::vector<float> numbers(width);
    for (std::int64_t row = first; row < last; ++row) {
      to_f32(tensor.dtype, {raw.get() + static_cast<std::size_t>(row - first) * bytes, bytes}, numbers);
      take(row, numbers);
    }
    return {};
  }};
}

Result<Hash128> WeightFiles::hash() const {
  Hasher hasher;
  for (const std::vector<std::string>* paths : {&others_, &paths_}) {
    for (const std::string& path : *paths) TRY(hash_file(*store_, path, hasher));
  }
  return hasher.digest();
}

}  // namespace systole
