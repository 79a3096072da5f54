#pragma once
// For tests: writes a GGUF file, byte by byte as docs/gguf.md has it, and without the reader's code.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ground/tensor/shape.h"

namespace systole {

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3, std::uint64_t alignment = 32)
      : version_(version), alignment_(alignment) {}

  template <typename T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string raw_text(std::string_view text) {
    return raw(static_cast<std::uint64_t>(text.size())) + std::string(text);
  }

  // A value of any type, given its bytes.
  GgufWriter& value(std::string_view key, std::uint32_t type, std::string_view bytes) {
    values_ += raw_text(key) + raw(type) + std::string(bytes);
    ++num_values_;
    return *this;
  }
  GgufWriter& u32(std::string_view key, std::uint32_t number) { return value(key, 4, raw(number)); }
  GgufWriter& f32(std::string_view key, float number) { return value(key, 6, raw(number)); }
  GgufWriter& flag(std::string_view key, bool is) { return value(key, 7, raw(static_cast<std::uint8_t>(is))); }
  GgufWriter& text(std::string_view key, std::string_view text) { return value(key, 8, raw_text(text)); }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& texts) {
    std::string bytes = raw(std::uint32_t{8}) + raw(static_cast<std::uint64_t>(texts.size()));
    for (const std::string& one : texts) bytes += raw_text(one);
    return value(key, 9, bytes);
  }
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& numbers) { return list(key, 5, numbers); }
  GgufWriter& f32s(std::string_view key, const std::vector<float>& numbers) { return list(key, 6, numbers); }

  // `shape` is outermost first; the file has it innermost first.
  GgufWriter& tensor(std::string_view name, const Shape& shape, std::uint32_t type, std::string_view bytes) {
    return tensor_at(name, shape, type, data_.size(), bytes);
  }
  GgufWriter& tensor_at(std::string_view name, const Shape& shape, std::uint32_t type, std::uint64_t offset,
                        std::string_view bytes = {}) {
    tensors_ += raw_text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto size = shape.rbegin(); size != shape.rend(); ++size) tensors_ += raw(static_cast<std::uint64_t>(*size));
    tensors_ += raw(type) + raw(offset);
    data_ += bytes;
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_, '\0');
    ++num_tensors_;
    return *this;
  }

  std::string finish() const {
    std::string file = "GGUF" + raw(version_) + raw(num_tensors_) + raw(num_values_) + values_ + tensors_;
    file.resize((file.size() + alignment_ - 1) / alignment_ * alignment_, '\0');
    return file + data_;
  }

 private:
  template <typename T>
  GgufWriter& list(std::string_view key, std::uint32_t type, const std::vector<T>& numbers) {
    std::string bytes = raw(type) + raw(static_cast<std::uint64_t>(numbers.size()));
    for (const T number : numbers) bytes += raw(number);
    return value(key, 9, bytes);
  }

  std::uint32_t version_;
  std::uint64_t alignment_, num_tensors_ = 0, num_values_ = 0;
  std::string values_, tensors_, data_;
};

}  // namespace systole
