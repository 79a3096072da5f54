#include "execute/data/formats/numpy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "ground/tensor/npy.h"

namespace systole {
namespace {

std::string npy_of(const std::string& dict, const std::string& data) {
  std::string header = dict + "\n", bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}
std::string dict_of(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr, fortran, shape);
}

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A zip archive with one member, stored.
std::string zip_of(const std::string& name, const std::string& data, std::uint32_t declared) {
  const auto crc =
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
  const auto about = [&](std::string& bytes) {
    for (const int value : {20, 0, 0, 0, 0}) put(bytes, static_cast<std::uint16_t>(value));
    put(bytes, crc);
    put(bytes, static_cast<std::uint32_t>(data.size()));
    put(bytes, declared);
    put(bytes, static_cast<std::uint16_t>(name.size()));
    put(bytes, std::uint16_t{0});
  };
  std::string bytes("PK\3\4", 4);
  about(bytes);
  bytes += name + data;
  const auto directory = static_cast<std::uint32_t>(bytes.size());
  bytes += std::string("PK\1\2", 4);
  put(bytes, std::uint16_t{20});
  about(bytes);
  bytes += std::string(14, '\0') + name;  // the member's place is 0
  const auto size = static_cast<std::uint32_t>(bytes.size()) - directory;
  bytes += std::string("PK\5\6", 4) + std::string(4, '\0');
  put(bytes, std::uint16_t{1});
  put(bytes, std::uint16_t{1});
  put(bytes, size);
  put(bytes, directory);
  put(bytes, std::uint16_t{0});
  return bytes;
}

class Numpy : public testing::Test {
 protected:
  std::string refused(const std::string& bytes, bool zip = false) {
    write_whole(*store_, "a", bytes).value();
    const auto reader = zip ? open_npz({store_.get(), "a", "a"}) : open_npy({store_.get(), "a", "a"});
    return reader.ok() ? "" : reader.error().message;
  }
  std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(Numpy, RowsOfAnArray) {
  std::vector<float> values(10 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string bytes = npy_bytes(DType::f32, {10, 3}, reinterpret_cast<const std::byte*>(values.data()));
  write_whole(*store_, "a.npy", bytes).value();
  write_whole(*store_, "a.npz", zip_of("rows.npy", bytes, static_cast<std::uint32_t>(bytes.size()))).value();
  const RecordFile plain{store_.get(), "a.npy", "a.npy"}, zip{store_.get(), "a.npz", "a.npz"};
  for (const auto& reader : {open_npy(plain).value().release(), open_npz(zip).value().release()}) {
    const std::unique_ptr<RecordReader> owned(reader);
    ASSERT_EQ(reader->count(), 10);
    DataRecord record;
    const auto is_row = [&](std::size_t row) {
      const std::string_view got = reader->field(record, ".").value();
      return got.size() == 12 && std::memcmp(got.data(), &values[3 * row], 12) == 0;
    };
    for (std::size_t i = 0; i < 10; ++i) EXPECT_TRUE(reader->next(record).value() && is_row(i));
    EXPECT_FALSE(reader->next(record).value());
    reader->read(7, record).value();
    EXPECT_TRUE(is_row(7));
  }
}

TEST_F(Numpy, Headers) {
  const auto header = parse_npy_header(npy_of(dict_of("<U5", "3, 2"), "")).value();
  EXPECT_EQ(header.item_bytes, 20);
  EXPECT_EQ(header.row_bytes(), 40);
  EXPECT_EQ(parse_npy_header(npy_of(dict_of("<M8[ns]", "4,"), "")).value().row_bytes(), 8);
  EXPECT_EQ(parse_npy_header(npy_of(dict_of("<f8", ""), "")).value().rows(), 1);
}

TEST_F(Numpy, TextsLoseTheirPadding) {
  std::string wide;
  for (const std::uint32_t c : {0x7au, 0xf6u, 0x1F600u, 0u, 0u, 0u}) put(wide, c);
  for (const auto& [descr, data, first] :
       {std::tuple("<U3", wide, "z\xC3\xB6\xF0\x9F\x98\x80"), std::tuple("|S3", std::string("ab\0\0\0\0", 6), "ab")}) {
    write_whole(*store_, "t.npy", npy_of(dict_of(descr, "2,"), data)).value();
    const auto reader = open_numpy({store_.get(), "t.npy", "t.npy"}).value();
    DataRecord record;
    ASSERT_TRUE(reader->next(record).value());
    EXPECT_EQ(reader->field(record, ".").value(), first);
    ASSERT_TRUE(reader->next(record).value());
    EXPECT_EQ(reader->field(record, ".").value(), "");
    EXPECT_EQ(reader->field(record, "x").error().hint, "field: .");
  }
}

TEST_F(Numpy, RefusedByName) {
  EXPECT_EQ(refused(npy_of(dict_of("<f4", "2,"), "1234567")),
            fmt::format("the array takes {} bytes with its header, and there are {}", 10 + 58 + 8, 10 + 58 + 7));
  EXPECT_NE(refused(npy_of(dict_of("|O", "2,"), "")).find("pickles"), std::string::npos);
  EXPECT_NE(refused(npy_of(dict_of("<f4", "2, 2", "True"), std::string(16, ' '))).find("Fortran"), std::string::npos);
  EXPECT_NE(
      refused(npy_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")).find("structured"),
      std::string::npos);
  EXPECT_NE(refused(npy_of(dict_of("<f4", "9999999999999999, 999999999999"), "")).find("more bytes than a file"),
            std::string::npos);
  EXPECT_NE(refused(npy_of(dict_of("<f4", "1000000000000, 0"), "")).find("empty"), std::string::npos);
  EXPECT_NE(refused(npy_of(dict_of("", "2,"), "")).find("dtype ''"), std::string::npos);
  EXPECT_NE(refused("PK").find("no header"), std::string::npos);
}

TEST_F(Numpy, DamagedZipsAreNamed) {
  const std::string array = npy_of(dict_of("<i4", "1,"), "1234");
  const auto size = static_cast<std::uint32_t>(array.size());
  const std::string good = zip_of("x.npy", array, size);
  EXPECT_EQ(refused(good, true), "");
  for (std::size_t i = 0; i < array.size(); ++i) {
    std::string bad = good;
    bad[35 + i] ^= 1;  // behind the header of 30 bytes and the name
    EXPECT_NE(refused(bad, true).find("CRC-32"), std::string::npos) << i;
  }
  EXPECT_NE(refused(good.substr(0, good.size() - 30), true).find("cut short"), std::string::npos);
  EXPECT_NE(refused(zip_of("x.npy", array, size + 1), true).find("CRC-32 or size"), std::string::npos);
  EXPECT_NE(refused(zip_of("x.npy", array, 0xfffffff0), true).find("bomb"), std::string::npos);
}

}  // namespace
}  // namespace systole
