#pragma once
// Protobuf's wire format, for the few messages that XLA's plugins take and return. A message is a sequence of fields in
// any order, each a key (number << 3 | kind) and a value; a reader skips unknown fields.
// Source: protobuf.dev/programming-guides/encoding. There is no schema here: the code that writes or reads a message
// names each field's number and its source.
//
// Kinds: 0 varint (integers, bools, enums: 7 bits per byte, low first; negative ones as 64 bits), 1 eight bytes, 2 a
// length and that many bytes (strings, messages, packed numbers), 5 four bytes. Kinds 3 and 4 (groups) predate proto3;
// no XLA message uses them, and they are refused.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::pjrt {

// Appends fields. Unlike proto3, writes default values too (0, "", no element).
// REQUIRES: 1 <= field < 2^29.
class WireWriter {
 public:
  WireWriter& integer(int field, std::int64_t value);  // int32, int64, bool and enums
  WireWriter& f64(int field, double value);
  WireWriter& f32(int field, float value);
  WireWriter& bytes(int field, std::string_view value);  // string, bytes and messages
  WireWriter& message(int field, const WireWriter& value) { return bytes(field, value.text_); }
  WireWriter& packed(int field, std::span<const std::int64_t> values);  // repeated integers

  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, int kind);

  std::string text_;
};

enum class WireKind : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// One field of a message. Reading it as an incompatible type is an error, never a wrong value.
struct WireField {
  int number = 0;
  WireKind kind = WireKind::varint;
  std::uint64_t bits = 0;    // for all kinds but bytes
  std::string_view content;  // for bytes; borrowed from the message

  // Errors: corrupt, with the field's number.
  Result<std::int64_t> integer() const;
  Result<double> real() const;  // from four or eight bytes
  Result<std::string_view> bytes() const;
};

// Iterates over a message's fields in order. The message is borrowed and untrusted: every length is checked against the
// remaining bytes, so reading takes linear time and no memory.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message), size_(message.size()) {}

  // Nothing at the end. Errors: corrupt, with the byte offset; after an error nothing more is read.
  Result<std::optional<WireField>> next();

 private:
  Result<std::uint64_t> varint();
  Error corrupt(std::string_view what);

  std::string_view rest_;
  std::size_t size_;
};

// The numbers of a packed field's content. Errors: corrupt.
Result<std::vector<std::int64_t>> unpacked(std::string_view content);

}  // namespace systole::pjrt
