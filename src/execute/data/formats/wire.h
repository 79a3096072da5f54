#pragma once
// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as much as the formats here need: a
// message is read field by field without a schema, and what is not asked for is passed over. Nothing is allocated;
// nothing recurses; every length is checked against the bytes there are. Groups, long deprecated, are refused.

#include <cstdint>
#include <string>
#include <string_view>

namespace systole {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // of a varint, fixed64 or fixed32
  std::string_view bytes;   // of bytes
};

// A varint at the start of `bytes`, which it is taken from. False if there is none: cut short, or over 64 bits.
bool take_varint(std::string_view& bytes, std::uint64_t& value);

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message), size_(message.size()) {}
  // The next field, or false at the end and at what is no message (then failed()).
  bool next(WireField& field);
  bool failed() const { return failed_; }
  std::size_t offset() const { return size_ - rest_.size(); }  // of what is unread

 private:
  std::string_view rest_;
  std::size_t size_;
  bool failed_ = false;
};

void put_varint(std::string& into, std::uint64_t value);
void put_number(std::string& into, std::uint32_t field, std::uint64_t value);  // a varint
void put_fixed64(std::string& into, std::uint32_t field, std::uint64_t value);
void put_bytes(std::string& into, std::uint32_t field, std::string_view bytes);  // or a message
std::size_t varint_size(std::uint64_t value);

}  // namespace systole
