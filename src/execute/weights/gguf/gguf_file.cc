#include "execute/weights/gguf/gguf_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "ground/base/utf8.h"
#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr const char* kAgain = "the file was cut short or damaged: copy it again";

constexpr std::uint32_t kNewest = 3;
constexpr std::uint32_t kBigEndian = 0x03000000;  // version 3 in the other byte order
constexpr std::int64_t kWindow = 64 << 10;
constexpr std::size_t kMostDims = 4;
constexpr int kDeepest = 4;  // arrays in arrays
constexpr std::int64_t kDefaultAlignment = 32;
constexpr const char* kAlignment = "general.alignment";

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
constexpr std::array<std::uint64_t, 13> kLeastBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// Reads a file from front to back through a window.
class Cursor {
 public:
  Cursor(Store& store, const std::string& path, std::int64_t size) : store_(store), path_(path), size_(size) {}

  std::int64_t at() const { return at_; }
  std::int64_t size() const { return size_; }
  std::uint64_t left() const { return static_cast<std::uint64_t>(size_ - at_); }

  Status take(std::span<std::byte> into, std::string_view what) {
    if (into.size() > left())
      return error(ErrorKind::corrupt, "the file ends at byte {}, in {} from byte {} on", size_, what, at_);
    if (at_ > kGgufHeaderLimit) {
      return error(ErrorKind::unsupported,
                   "what stands before the tensors takes more than {} bytes, which are not read", kGgufHeaderLimit);
    }
    while (!into.empty()) {
      if (at_ < begin_ || at_ >= begin_ + static_cast<std::int64_t>(window_.size())) TRY(fill());
      const auto from = std::span<const std::byte>(window_).subspan(static_cast<std::size_t>(at_ - begin_));
      const std::size_t count = std::min(from.size(), into.size());
      std::memcpy(into.data(), from.data(), count);
      into = into.subspan(count);
      at_ += static_cast<std::int64_t>(count);
    }
    return {};
  }

  template <typename T>
  Result<T> number(std::string_view what) {
    std::array<std::byte, sizeof(T)> bytes;
    TRY(take(bytes, what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  Result<std::string> text(std::string_view what) {
    const std::int64_t begin = at_;
    const auto length = TRY(number<std::uint64_t>(what));
    if (length > left() || length > static_cast<std::uint64_t>(kGgufHeaderLimit)) {
      return error(ErrorKind::corrupt, "{} at byte {} would have {} bytes, and {} are left", what, begin, length,
                   left())
          .hinted(kAgain);
    }
    std::string text(static_cast<std::size_t>(length), '\0');
    TRY(take(std::as_writable_bytes(std::span(text.data(), text.size())), what));
    return text;
  }

 private:
  Status fill() {
    window_.resize(static_cast<std::size_t>(std::min(kWindow, size_ - at_)));
    begin_ = at_;
    return store_.read(path_, at_, window_);
  }

  Store& store_;
  const std::string& path_;
  std::int64_t size_, at_ = 0, begin_ = 0;
  std::vector<std::byte> window_;
};

// A name as it may be printed.
Result<std::string> read_name(Cursor& cursor, std::string_view what) {
  const std::int64_t begin = cursor.at();
  std::string name = TRY(cursor.text(what));
  if (name.empty() || find_invalid_utf8(name))
    return error(ErrorKind::corrupt, "{} at byte {} is {}", what, begin, name.empty() ? "empty" : "not UTF-8");
  return name;
}

Result<bool> read_bool(Cursor& cursor, std::string_view what) {
  const std::int64_t begin = cursor.at();
  const auto value = TRY(cursor.number<std::uint8_t>(what));
  if (value <= 1) return value == 1;
  return error(ErrorKind::corrupt, "{} at byte {} is {}, neither true nor false", what, begin, value);
}

Result<ValueType> read_type(Cursor& cursor, std::string_view what) {
  const std::int64_t begin = cursor.at();
  const auto type = TRY(cursor.number<std::uint32_t>(what));
  if (type < kLeastBytes.size()) return static_cast<ValueType>(type);
  return error(ErrorKind::corrupt, "{} at byte {} is of type {}, which no value has", what, begin, type);
}

Result<double> read_double(Cursor& cursor, ValueType type, std::string_view what) {
  using enum ValueType;
  switch (type) {
    case u8: return static_cast<double>(TRY(cursor.number<std::uint8_t>(what)));
    case i8: return static_cast<double>(TRY(cursor.number<std::int8_t>(what)));
    case u16: return static_cast<double>(TRY(cursor.number<std::uint16_t>(what)));
    case i16: return static_cast<double>(TRY(cursor.number<std::int16_t>(what)));
    case u32: return static_cast<double>(TRY(cursor.number<std::uint32_t>(what)));
    case i32: return static_cast<double>(TRY(cursor.number<std::int32_t>(what)));
    case u64: return static_cast<double>(TRY(cursor.number<std::uint64_t>(what)));
    case i64: return static_cast<double>(TRY(cursor.number<std::int64_t>(what)));
    case f32: return static_cast<double>(TRY(cursor.number<float>(what)));
    case f64: return TRY(cursor.number<double>(what));
    case boolean: return TRY(read_bool(cursor, what)) ? 1.0 : 0.0;
    case string:
    case array: break;
  }
  CHECK(false, "no number");
}

Result<GgufValue> read_array(Cursor& cursor, std::string_view what, int depth) {
  const std::int64_t begin = cursor.at();
  const ValueType type = TRY(read_type(cursor, what));
  const auto count = TRY(cursor.number<std::uint64_t>(what));
  if (count > cursor.left() / kLeastBytes[static_cast<std::size_t>(type)]) {
    return error(ErrorKind::corrupt, "{} at byte {} would have {} elements, and {} bytes are left", what, begin, count,
                 cursor.left())
        .hinted(kAgain);
  }
  if (count > kGgufMostItems || depth > kDeepest) {
    return error(ErrorKind::unsupported, "{} at byte {} has {}", what, begin,
                 depth > kDeepest ? fmt::format("arrays in each other more than {} deep", kDeepest)
                                  : fmt::format("{} elements, and no more than {} are read", count, kGgufMostItems));
  }
  if (type == ValueType::array) {
    for (std::uint64_t i = 0; i < count; ++i) TRY(read_array(cursor, what, depth + 1));
    return GgufValue();
  }
  if (type == ValueType::string) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count; ++i) texts.push_back(TRY(cursor.text(what)));
    return GgufValue(std::move(texts));
  }
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(TRY(read_double(cursor, type, what)));
  return GgufValue(std::move(numbers));
}

Result<GgufValue> read_value(Cursor& cursor, const std::string& key) {
  using enum ValueType;
  const std::string what = fmt::format("the value of '{}'", key);
  switch (const ValueType type = TRY(read_type(cursor, what)); type) {
    case string: return GgufValue(TRY(cursor.text(what)));
    case array: return read_array(cursor, what, 1);
    case boolean: return GgufValue(TRY(read_bool(cursor, what)));
    case f32: return GgufValue(TRY(cursor.number<float>(what)));
    case f64: return GgufValue(TRY(cursor.number<double>(what)));
    case u64: return GgufValue(TRY(cursor.number<std::uint64_t>(what)));
    case i64: return GgufValue(TRY(cursor.number<std::int64_t>(what)));
    default: return GgufValue(static_cast<std::int64_t>(TRY(read_double(cursor, type, what))));
  }
}

// The bytes of a tensor's data; nothing if they overflow.
std::optional<std::int64_t> data_bytes(const Shape& shape, const GgufBlock& block) {
  std::int64_t elements = 1, bytes = 0;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(elements, size, &elements)) return {};
  }
  if (__builtin_mul_overflow(elements / block.elements, block.bytes, &bytes)) return {};
  return bytes;
}

std::string bytes_shown(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

}  // namespace

class GgufParser {
 public:
  GgufParser(Store& store, const std::string& path, std::int64_t size)
      : file_(store, path), cursor_(store, file_.path_, size) {}

  Result<GgufFile> parse() {
    TRY(read_version());
    const auto tensors = TRY(cursor_.number<std::uint64_t>("the number of tensors"));
    const auto values = TRY(cursor_.number<std::uint64_t>("the number of values"));
    for (const auto& [count, least, of] :
         {std::tuple(tensors, kLeastTensor, "tensors"), std::tuple(values, kLeastValue, "metadata values")}) {
      if (count > cursor_.left() / least) {
        return error(ErrorKind::corrupt, "the file would have {} {}, and {} bytes are left at byte {}", count, of,
                     cursor_.left(), cursor_.at())
            .hinted(kAgain);
      }
    }
    for (std::uint64_t i = 0; i < values; ++i) TRY(read_pair());
    const std::int64_t alignment = TRY(read_alignment());
    for (std::uint64_t i = 0; i < tensors; ++i) TRY(read_tensor(alignment));
    TRY(place_tensors(alignment));
    return std::move(file_);
  }

 private:
  static constexpr std::uint64_t kLeastTensor = 33;  // name of one byte, one size
  static constexpr std::uint64_t kLeastValue = 14;   // key of one byte, value of one

  Status read_version() {
    std::array<std::byte, 4> magic;
    TRY(cursor_.take(magic, "its first four bytes"));
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
      return error(ErrorKind::corrupt, "this is no GGUF file: it begins with the bytes {}", bytes_shown(magic))
          .hinted("name a file that llama.cpp reads; models in safetensors are folders");
    }
    const auto version = TRY(cursor_.number<std::uint32_t>("the version"));
    if (version == 2 || version == kNewest) return {};
    if (version == kBigEndian || version == kBigEndian * 2 / 3)
      return error(ErrorKind::unsupported, "this GGUF file is big-endian; little-endian ones are read")
          .hinted("convert the model on a little-endian machine");
    Error other =
        error(ErrorKind::unsupported, "this GGUF file has version {}; versions 2 and {} are read", version, kNewest)
            .hinted("convert the model again with a current llama.cpp");
    return version > kNewest ? std::move(other).coded(ErrorCode::newer_version) : std::move(other);
  }

  Status read_pair() {
    const std::int64_t begin = cursor_.at();
    std::string key = TRY(read_name(cursor_, "a key"));
    GgufValue value = TRY(read_value(cursor_, key));
    if (file_.values_.contains(key))
      return error(ErrorKind::corrupt, "the key '{}' at byte {} stands there twice", key, begin);
    file_.values_.emplace(std::move(key), std::move(value));
    return {};
  }

  Result<std::int64_t> read_alignment() const {
    const std::int64_t alignment = TRY(file_.integer(kAlignment, 1, kDefaultAlignment));
    if (std::has_single_bit(static_cast<std::uint64_t>(alignment)) && alignment <= kGgufHeaderLimit) return alignment;
    return error(ErrorKind::corrupt, "{} is {}, which is no power of two up to {}", kAlignment, alignment,
                 kGgufHeaderLimit);
  }

  Status read_tensor(std::int64_t alignment) {
    const std::int64_t begin = cursor_.at();
    GgufTensor tensor;
    tensor.name = TRY(read_name(cursor_, "the name of a tensor"));
    const std::string what = fmt::format("tensor '{}'", tensor.name);
    const auto wrong = [&](const std::string& why) {
      return error(ErrorKind::corrupt, "{} at byte {} {}", what, begin, why);
    };
    if (!names_.insert(tensor.name).second) return wrong("stands there twice");
    const auto ndim = TRY(cursor_.number<std::uint32_t>(what));
    if (ndim < 1 || ndim > kMostDims) return wrong(fmt::format("has {} dims, not 1 to {}", ndim, kMostDims));
    for (std::uint32_t i = 0; i < ndim; ++i) {
      const auto size = TRY(cursor_.number<std::uint64_t>(what));
      if (size < 1 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return wrong(fmt::format("has a dim of size {}", size));
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    const auto type = TRY(cursor_.number<std::uint32_t>(what));
    tensor.block = gguf_block(type);
    if (tensor.block == nullptr) {
      return error(ErrorKind::unsupported, "{} at byte {} is of type {}, which is not read", what, begin,
                   gguf_type_name(type))
          .hinted("take the model in a type that is: " + gguf_types_read());
    }
    const GgufBlock& block = *tensor.block;
    if (tensor.shape.back() % block.elements != 0) {
      return wrong(fmt::format("is {} in rows of {} elements, which are no blocks of {}", block.name,
                               tensor.shape.back(), block.elements));
    }
    const std::optional<std::int64_t> bytes = data_bytes(tensor.shape, block);
    if (!bytes)
      return wrong(fmt::format("would be {}{}, more than a file can hold", block.name, to_string(tensor.shape)));
    const auto offset = TRY(cursor_.number<std::uint64_t>(what));
    if (offset % static_cast<std::uint64_t>(alignment) != 0 || offset > static_cast<std::uint64_t>(cursor_.size()))
      return wrong(fmt::format("has its data at {}, which is {}", offset,
                               offset % static_cast<std::uint64_t>(alignment) != 0
                                   ? fmt::format("no multiple of the alignment {}", alignment)
                                   : "beyond the end of the file"));
    tensor.begin = static_cast<std::int64_t>(offset);
    tensor.end = *bytes;  // until place_tensors
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  // Offsets count from the data; no data may lie beyond the file or in another's.
  Status place_tensors(std::int64_t alignment) {
    const std::int64_t start = (cursor_.at() + alignment - 1) / alignment * alignment;
    std::vector<const GgufTensor*> by_place;
    for (GgufTensor& tensor : file_.tensors_) {
      tensor.begin += start;
      if (tensor.begin > cursor_.size() || tensor.end > cursor_.size() - tensor.begin) {
        return error(ErrorKind::corrupt, "tensor '{}' has {} bytes from byte {} on, and the file ends at byte {}",
                     tensor.name, tensor.end, tensor.begin, cursor_.size())
            .hinted(kAgain);
      }
      tensor.end += tensor.begin;
      by_place.push_back(&tensor);
    }
    std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
    for (std::size_t i = 1; i < by_place.size(); ++i) {
      const GgufTensor &one = *by_place[i - 1], &next = *by_place[i];
      if (next.begin < one.end) {
        return error(ErrorKind::corrupt, "tensor '{}' begins at byte {}, inside '{}', which ends at byte {}", next.name,
                     next.begin, one.name, one.end);
      }
    }
    return {};
  }

  GgufFile file_;
  Cursor cursor_;
  std::set<std::string> names_;
};

Result<GgufFile> GgufFile::open(Store& store, const std::string& path) {
  TRY(refuse_lfs_pointer(store, path));
  Result<GgufFile> file = GgufParser(store, path, TRY(store.size(path)).count()).parse();
  if (file.ok() || !file.error().where.file.empty() || file.error().kind == ErrorKind::io) return file;
  return std::move(file).error().at({path});
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& one) { return one.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

template <typename T>
Result<const T*> GgufFile::value(const std::string& key, const char* what) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return error(ErrorKind::corrupt, "the file has no {}", key).at({path_});
  if (const T* value = std::get_if<T>(&found->second)) return value;
  return error(ErrorKind::corrupt, "{} is not {}", key, what).at({path_});
}

Result<std::int64_t> GgufFile::integer(const std::string& key, std::int64_t lowest) const {
  const auto found = values_.find(key);
  std::int64_t value = 0;
  if (const auto* large = found == values_.end() ? nullptr : std::get_if<std::uint64_t>(&found->second)) {
    value = *large > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ? -1 : static_cast<std::int64_t>(*large);
  } else {
    value = *TRY(this->value<std::int64_t>(key, "an integer"));
  }
  if (value >= lowest) return value;
  return error(ErrorKind::corrupt, "{} is out of range; {} is the least", key, lowest).at({path_});
}

Result<std::int64_t> GgufFile::integer(const std::string& key, std::int64_t lowest, std::int64_t otherwise) const {
  return has(key) ? integer(key, lowest) : otherwise;
}

Result<float> GgufFile::number(const std::string& key) const { return *TRY(value<float>(key, "a number (f32)")); }

Result<bool> GgufFile::flag(const std::string& key, bool otherwise) const {
  return has(key) ? *TRY(value<bool>(key, "true or false")) : otherwise;
}

Result<std::string> GgufFile::text(const std::string& key) const { return *TRY(value<std::string>(key, "a text")); }

Result<const std::vector<std::string>*> GgufFile::texts(const std::string& key) const {
  return value<std::vector<std::string>>(key, "a list of texts");
}

Result<const std::vector<double>*> GgufFile::numbers(const std::string& key) const {
  return value<std::vector<double>>(key, "a list of numbers");
}

Status GgufFile::read_elements(const GgufTensor& tensor, std::int64_t first, std::span<std::byte> into) const {
  const GgufBlock& block = *tensor.block;
  const std::int64_t count = static_cast<std::int64_t>(into.size()) / size_of(block.dtype);
  CHECK(first % block.elements == 0 && count % block.elements == 0, "parts of a block of '{}'", tensor.name);
  if (block.widen == nullptr) return read_blocks(tensor, first, into);
  std::vector<std::byte> blocks(static_cast<std::size_t>(count / block.elements * block.bytes));
  TRY(read_blocks(tensor, first, blocks));
  std::vector<float> numbers(static_cast<std::size_t>(count));
  widen(block, blocks, numbers);
  std::memcpy(into.data(), numbers.data(), into.size());
  return {};
}

Status GgufFile::read_blocks(const GgufTensor& tensor, std::int64_t first, std::span<std::byte> into) const {
  const std::int64_t begin = tensor.begin + first / tensor.block->elements * tensor.block->bytes;
  CHECK(begin >= tensor.begin && static_cast<std::int64_t>(into.size()) <= tensor.end - begin, "elements beyond '{}'",
        tensor.name);
  return store_->read(path_, begin, into);
}

GgufFile GgufFile::without_values() && {
  values_.clear();
  return std::move(*this);
}

}  // namespace systole
