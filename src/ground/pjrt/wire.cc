#include "ground/pjrt/wire.h"

#include <bit>
#include <cstring>

namespace systole::pjrt {
namespace {

constexpr int kMaxVarint = 10;  // bytes: 64 bits, 7 per byte

template <typename Bits>
void append_fixed(std::string& text, Bits bits) {
  for (std::size_t i = 0; i < sizeof bits; ++i) text.push_back(static_cast<char>(bits >> (8 * i)));
}

std::uint64_t fixed(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return bits;
}

}  // namespace

void WireWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  text_.push_back(static_cast<char>(value));
}

void WireWriter::key(int field, int kind) {
  CHECK(field >= 1 && field < (1 << 29), "field number {}", field);
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(kind));
}

WireWriter& WireWriter::integer(int field, std::int64_t value) {
  key(field, 0);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireWriter& WireWriter::f64(int field, double value) {
  key(field, 1);
  append_fixed(text_, std::bit_cast<std::uint64_t>(value));
  return *this;
}

WireWriter& WireWriter::f32(int field, float value) {
  key(field, 5);
  append_fixed(text_, std::bit_cast<std::uint32_t>(value));
  return *this;
}

WireWriter& WireWriter::bytes(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  text_.append(value);
  return *this;
}

WireWriter& WireWriter::packed(int field, std::span<const std::int64_t> values) {
  WireWriter content;
  for (const std::int64_t value : values) content.varint(static_cast<std::uint64_t>(value));
  return bytes(field, content.text_);
}

Result<std::int64_t> WireField::integer() const {
  if (kind != WireKind::varint) return error(ErrorKind::corrupt, "field {} of a message is no integer", number);
  return static_cast<std::int64_t>(bits);
}

Result<double> WireField::real() const {
  if (kind == WireKind::fixed64) return std::bit_cast<double>(bits);
  if (kind == WireKind::fixed32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return error(ErrorKind::corrupt, "field {} of a message is no floating-point number", number);
}

Result<std::string_view> WireField::bytes() const {
  if (kind != WireKind::bytes) return error(ErrorKind::corrupt, "field {} of a message is no text", number);
  return content;
}

Error WireReader::corrupt(std::string_view what) {
  const std::size_t at = size_ - rest_.size();
  rest_ = {};
  return error(ErrorKind::corrupt, "{} at byte {} of a message of {}", what, at, size_);
}

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (int i = 0; i < kMaxVarint; ++i) {
    if (static_cast<std::size_t>(i) >= rest_.size()) return corrupt("a number that is cut off");
    const auto byte = static_cast<unsigned char>(rest_[static_cast<std::size_t>(i)]);
    if (i == kMaxVarint - 1 && byte > 1) break;  // more than 64 bits
    value |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_.remove_prefix(static_cast<std::size_t>(i) + 1);
      return value;
    }
  }
  return corrupt("a number of more than 64 bits");
}

Result<std::optional<WireField>> WireReader::next() {
  if (rest_.empty()) return std::optional<WireField>();
  const std::uint64_t key = TRY(varint());
  const std::uint64_t number = key >> 3;
  if (number == 0 || number >= (1 << 29)) return corrupt("no field's number");
  WireField field;
  field.number = static_cast<int>(number);
  std::size_t length = 0;
  switch (key & 7) {
    case 0: field.bits = TRY(varint()); return std::optional(field);
    case 1:
      field.kind = WireKind::fixed64;
      length = 8;
      break;
    case 2: {
      field.kind = WireKind::bytes;
      const std::uint64_t said = TRY(varint());
      if (said > rest_.size()) return corrupt("a field that is longer than what is left");
      length = static_cast<std::size_t>(said);
      break;
    }
    case 5:
      field.kind = WireKind::fixed32;
      length = 4;
      break;
    default: return corrupt("a field of a kind that proto3 does not have");
  }
  if (length > rest_.size()) return corrupt("a number that is cut off");
  if (field.kind == WireKind::bytes)
    field.content = rest_.substr(0, length);
  else
    field.bits = fixed(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return std::optional(field);
}

Result<std::vector<std::int64_t>> unpacked(std::string_view content) {
  std::vector<std::int64_t> values;
  std::uint64_t value = 0;
  int shift = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift == 63 && byte > 1) return error(ErrorKind::corrupt, "a packed number of more than 64 bits");
    value |= std::uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    values.push_back(static_cast<std::int64_t>(value));
    value = 0;
    shift = 0;
  }
  if (shift != 0) return error(ErrorKind::corrupt, "a packed number that is cut off");
  return values;
}

}  // namespace systole::pjrt
