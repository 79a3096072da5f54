#include "ground/tensor/npy.h"

#include <cstring>

namespace systole {
namespace {

// NumPy's name of a type; empty if NumPy lacks it.
std::string descr_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return "<f8";
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::i8: return "|i1";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::u8: return "|u1";
    case DType::u32: return "<u4";
    case DType::u64: return "<u8";
    case DType::boolean: return "|b1";
    default: return "";
  }
}

}  // namespace

std::string npy_bytes(DType dtype, const Shape& shape, const std::byte* data) {
  std::string dims;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    dims += fmt::format("{},", size);
    count *= size;
  }
  const std::string own = descr_of(dtype);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", own.empty() ? "<f4" : own, dims);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  header.append(63 - (kBefore + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (!own.empty()) {
    bytes.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(count * size_of(dtype)));
    return bytes;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(load(dtype, data, i));
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

}  // namespace systole
