#include "execute/data/formats/wire.h"

#include <cstring>

namespace systole {

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 9 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool WireReader::next(WireField& field) {
  if (rest_.empty() || failed_) return false;
  failed_ = true;  // until the field is whole
  std::uint64_t tag = 0;
  std::string_view at = rest_;
  if (!take_varint(at, tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return false;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  field.value = 0;
  field.bytes = {};
  switch (field.type) {
    case WireType::varint:
      if (!take_varint(at, field.value)) return false;
      break;
    case WireType::fixed64:
    case WireType::fixed32: {
      const std::size_t size = field.type == WireType::fixed64 ? 8 : 4;
      if (at.size() < size) return false;
      std::memcpy(&field.value, at.data(), size);  // little-endian, as the machine
      at.remove_prefix(size);
      break;
    }
    case WireType::bytes: {
      std::uint64_t size = 0;
      if (!take_varint(at, size) || size > at.size()) return false;
      field.bytes = at.substr(0, size);
      at.remove_prefix(size);
      break;
    }
    default: return false;
  }
  rest_ = at;
  failed_ = false;
  return true;
}

void put_varint(std::string& into, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) into += static_cast<char>(value | 0x80);
  into += static_cast<char>(value);
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void put_number(std::string& into, std::uint32_t field, std::uint64_t value) {
  put_varint(into, std::uint64_t{field} << 3 | static_cast<std::uint64_t>(WireType::varint));
  put_varint(into, value);
}

void put_fixed64(std::string& into, std::uint32_t field, std::uint64_t value) {
  put_varint(into, std::uint64_t{field} << 3 | static_cast<std::uint64_t>(WireType::fixed64));
  into.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_bytes(std::string& into, std::uint32_t field, std::string_view bytes) {
  put_varint(into, std::uint64_t{field} << 3 | static_cast<std::uint64_t>(WireType::bytes));
  put_varint(into, bytes.size());
  into += bytes;
}

}  // namespace systole
