#include "execute/data/formats/parquet/thrift.h"

#include <utility>

namespace systole::parquet {

void ThriftReader::refuse(const char* why) {
  if (why_ == nullptr) why_ = why;
}

std::uint8_t ThriftReader::next_byte() {
  if (!ok()) return 0;
  if (at_ == bytes_.size()) {
    ran_out_ = true;
    refuse("its bytes end too early");
    return 0;
  }
  return std::to_integer<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = next_byte();
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number has more than 64 bits");
  return 0;
}

std::int64_t ThriftReader::zigzag() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

ThriftType ThriftReader::field(int& id) {
  const std::uint8_t byte = next_byte();
  const int type = byte & 0x0f;
  if (type > static_cast<int>(ThriftType::structure)) refuse("a field is of a type that Thrift lacks");
  if (!ok() || type == 0) return ThriftType::stop;
  const std::int64_t next = byte >> 4 == 0 ? zigzag() : id + (byte >> 4);
  if (next < 0 || next > 0x7fff) refuse("a field's number is out of range");
  id = static_cast<int>(next);
  return ok() ? static_cast<ThriftType>(type) : ThriftType::stop;
}

std::int64_t ThriftReader::integer(ThriftType type) {
  if (type == ThriftType::byte) return static_cast<std::int8_t>(next_byte());
  if (type < ThriftType::i16 || type > ThriftType::i64) {
    refuse("a field that is a number has another type");
    return 0;
  }
  return zigzag();
}

bool ThriftReader::boolean(ThriftType type) {
  if (type != ThriftType::yes && type != ThriftType::no) refuse("a field that is true or false has another type");
  return type == ThriftType::yes;
}

std::string_view ThriftReader::binary(ThriftType type) {
  if (type != ThriftType::binary) refuse("a field that is a text has another type");
  const std::uint64_t size = varint();
  if (!ok()) return {};
  if (size > bytes_.size() - at_) {
    ran_out_ = true;
    refuse("a text is longer than the bytes that are left");
    return {};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return text;
}

std::size_t ThriftReader::list_size(ThriftType type, ThriftType item) {
  if (type != ThriftType::list) refuse("a field that is a list has another type");
  const std::uint8_t byte = next_byte();
  const std::uint64_t count = byte >> 4 == 15 ? varint() : byte >> 4;
  if (!ok()) return 0;
  if (count > 0 && (byte & 0x0f) != static_cast<int>(item)) refuse("the items of a list have another type");
  if (count > bytes_.size() - at_) {  // an item has a byte at least
    ran_out_ = true;
    refuse("a list has more items than bytes are left");
  }
  return ok() ? count : 0;
}

// An item of a list or map: booleans are a byte each there.
void ThriftReader::skip_item(int type, int depth) {
  const auto item = static_cast<ThriftType>(type);
  skip(item == ThriftType::yes || item == ThriftType::no ? ThriftType::byte : item, depth);
}

void ThriftReader::skip_map(int depth) {
  const std::uint64_t count = varint();
  if (count == 0) return;
  const int types = next_byte();
  for (std::uint64_t i = 0; i < count && ok(); ++i) {
    skip_item(types >> 4, depth + 1);
    skip_item(types & 0x0f, depth + 1);
  }
}

void ThriftReader::skip_list(int depth) {
  const int byte = next_byte();
  const std::uint64_t count = byte >> 4 == 15 ? varint() : static_cast<std::uint64_t>(byte >> 4);
  for (std::uint64_t i = 0; i < count && ok(); ++i) skip_item(byte & 0x0f, depth + 1);
}

void ThriftReader::skip(ThriftType type, int depth) {
  if (depth > kDepth) refuse("it is nested too deeply");
  if (!ok()) return;
  switch (type) {
    case ThriftType::yes:
    case ThriftType::no: return;
    case ThriftType::byte: (void)next_byte(); return;
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64: (void)varint(); return;
    case ThriftType::real:
      for (int i = 0; i < 8; ++i) (void)next_byte();
      return;
    case ThriftType::binary: (void)binary(); return;
    case ThriftType::list:
    case ThriftType::set: return skip_list(depth);
    case ThriftType::map: return skip_map(depth);
    case ThriftType::structure: {
      int id = 0;
      while (ok()) {
        const ThriftType inner = field(id);
        if (inner == ThriftType::stop) return;
        skip(inner, depth + 1);
      }
      return;
    }
    default: refuse("a field is of a type that Thrift lacks");
  }
}

void ThriftWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
  out_ += static_cast<char>(value);
}

void ThriftWriter::zigzag(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

void ThriftWriter::header(int id, ThriftType type) {
  out_ += static_cast<char>((id - last_) << 4 | static_cast<int>(type));  // Parquet's ids never leap by 16
  last_ = id;
}

void ThriftWriter::integer(int id, std::int64_t value, ThriftType type) {
  header(id, type);
  if (type == ThriftType::byte) {
    out_ += static_cast<char>(value);
    return;
  }
  zigzag(value);
}

void ThriftWriter::boolean(int id, bool value) { header(id, value ? ThriftType::yes : ThriftType::no); }

void ThriftWriter::binary(int id, std::string_view value) {
  header(id, ThriftType::binary);
  item(value);
}

void ThriftWriter::item(std::string_view value) {
  varint(value.size());
  out_ += value;
}

void ThriftWriter::begin_list(int id, ThriftType item, std::size_t count) {
  header(id, ThriftType::list);
  out_ += static_cast<char>((count < 15 ? count : 15) << 4 | static_cast<std::size_t>(item));
  if (count >= 15) varint(count);
}

void ThriftWriter::begin(int id) {
  header(id, ThriftType::structure);
  begin_item();
}

void ThriftWriter::begin_item() {
  outer_ += static_cast<char>(last_);
  last_ = 0;
}

void ThriftWriter::end() {
  out_ += '\0';
  last_ = outer_.empty() ? 0 : outer_.back();
  if (!outer_.empty()) outer_.pop_back();
}

}  // namespace systole::parquet
