#pragma once
// Thrift's compact protocol, as far as Parquet's footers and page headers use it. The reader is bounded: no list is
// longer than the bytes that are left, no nesting deeper than kDepth, and nothing is allocated here.
//
// A struct is a run of fields, each a byte (id's increase << 4 | type), an id as zigzag varint where the increase is 0,
// and the value; a zero byte ends it. Integers are zigzag varints, texts have their length before them, a list begins
// with (count << 4 | type), a count of 15 meaning that a varint follows. Booleans of a field are its type.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace systole::parquet {

enum class ThriftType : std::uint8_t {
  stop = 0,
  yes = 1,
  no = 2,
  byte = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
};

// After the first error every call gives 0 or nothing, so that a caller asks why() once, at the end.
class ThriftReader {
 public:
  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return why_ == nullptr; }
  const char* why() const { return why_; }      // null: no error
  bool ran_out() const { return ran_out_; }     // the error is that the bytes ended
  std::size_t position() const { return at_; }  // of the next byte
  void refuse(const char* why);                 // the caller's own error; the first one stays

  // Calls `each(id, type)` for every field of a struct; it reads the value and says true, or says false to skip it.
  template <typename Each>
  void fields(Each&& each) {
    int id = 0;
    while (ok()) {
      const ThriftType type = field(id);
      if (type == ThriftType::stop) return;
      if (!each(id, type)) skip(type, 0);
    }
  }
  // Calls `each()` for every item of a list, which reads it. Refuses a list of another type.
  template <typename Each>
  void list(ThriftType type, ThriftType item, Each&& each) {
    for (std::size_t left = list_size(type, item); left > 0 && ok(); --left) each();
  }
  std::int64_t integer(ThriftType type);
  std::int64_t item() { return zigzag(); }  // an integer of a list
  bool boolean(ThriftType type);
  std::string_view binary(ThriftType type = ThriftType::binary);  // a view of the bytes

 private:
  static constexpr int kDepth = 32;

  ThriftType field(int& id);
  std::size_t list_size(ThriftType type, ThriftType item);
  void skip(ThriftType type, int depth);
  void skip_item(int type, int depth);
  void skip_list(int depth);
  void skip_map(int depth);
  std::uint8_t next_byte();
  std::uint64_t varint();
  std::int64_t zigzag();

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  const char* why_ = nullptr;
  bool ran_out_ = false;
};

// Writes into a text. Fields are written in rising order of their ids; struct fields are opened and closed.
class ThriftWriter {
 public:
  void integer(int id, std::int64_t value, ThriftType type = ThriftType::i32);
  void boolean(int id, bool value);
  void binary(int id, std::string_view value);
  void begin_list(int id, ThriftType item, std::size_t count);
  void begin(int id);  // a struct
  void begin_item();   // a struct of a list
  void end();          // of either, and of the outermost
  void item(std::int64_t value) { zigzag(value); }
  void item(std::string_view value);
  std::string take() { return std::move(out_); }

 private:
  void header(int id, ThriftType type);
  void varint(std::uint64_t value);
  void zigzag(std::int64_t value);

  std::string out_;
  std::string outer_;  // the last ids of the structs around
  int last_ = 0;
};

}  // namespace systole::parquet
