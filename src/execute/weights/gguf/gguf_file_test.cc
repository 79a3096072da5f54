#include "execute/weights/gguf/gguf_file.h"

#include <gtest/gtest.h>

#include "execute/weights/testing/gguf_writer.h"

namespace systole {
namespace {

const std::string kPath = "m.gguf";

class Gguf : public testing::Test {
 protected:
  Result<GgufFile> open(const std::string& bytes) {
    EXPECT_TRUE(write_whole(*store_, kPath, bytes).ok());
    return GgufFile::open(*store_, kPath);
  }
  // The error of a file; `kind` and the file's name are checked.
  std::string refused(const std::string& bytes, ErrorKind kind = ErrorKind::corrupt) {
    const auto file = open(bytes);
    if (file.ok()) return "taken";
    EXPECT_EQ(file.error().kind, kind) << file.error().message;
    EXPECT_EQ(file.error().where.file, kPath);
    return file.error().message;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
};

std::string floats(std::initializer_list<float> numbers) {
  std::string bytes;
  for (const float number : numbers) bytes += GgufWriter::raw(number);
  return bytes;
}

GgufWriter small(std::uint32_t version = 3) {
  GgufWriter file(version);
  file.text("general.architecture", "llama").u32("n", 7).f32("eps", 1e-5F).flag("is", true);
  file.texts("words", {"a", "", "\xff"})
      .i32s("numbers", {-1, 2})
      .value("large", 10, GgufWriter::raw(~std::uint64_t{0}));
  file.value("deep", 9,
             GgufWriter::raw(9U) + GgufWriter::raw(std::uint64_t{1}) + GgufWriter::raw(0U) +
                 GgufWriter::raw(std::uint64_t{2}) + "xy");
  file.tensor("a", {2, 3}, 0, floats({1, 2, 3, 4, 5, 6}));
  file.tensor("b", {32}, 8, GgufWriter::raw(std::uint16_t{0x3c00}) + std::string(32, '\2'));
  return file;
}

TEST_F(Gguf, IsRead) {
  for (const std::uint32_t version : {2U, 3U}) {
    const auto opened = open(small(version).finish());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const GgufFile& file = *opened;
    EXPECT_EQ(file.text("general.architecture").value(), "llama");
    EXPECT_EQ(file.integer("n", 1).value(), 7);
    EXPECT_EQ(file.integer("none", 1, 5).value(), 5);
    EXPECT_EQ(file.number("eps").value(), 1e-5F);
    EXPECT_TRUE(file.flag("is", false).value());
    EXPECT_FALSE(file.flag("none", false).value());
    EXPECT_EQ(*file.texts("words").value(), (std::vector<std::string>{"a", "", "\xff"}));
    EXPECT_EQ(*file.numbers("numbers").value(), (std::vector<double>{-1, 2}));
    EXPECT_TRUE(file.has("deep"));
    ASSERT_EQ(file.tensors().size(), 2u);
    EXPECT_EQ(file.find("a")->shape, (Shape{2, 3}));
    EXPECT_EQ(file.find("c"), nullptr);
    std::vector<float> row(3), block(32);
    ASSERT_TRUE(file.read_elements(*file.find("a"), 3, std::as_writable_bytes(std::span(row))).ok());
    EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));
    ASSERT_TRUE(file.read_elements(*file.find("b"), 0, std::as_writable_bytes(std::span(block))).ok());
    EXPECT_EQ(block, std::vector<float>(32, 2));
  }
}

TEST_F(Gguf, SaysWhatAKeyIsNot) {
  const GgufFile file = open(small().finish()).value();
  EXPECT_EQ(file.integer("none", 1).error().message, "the file has no none");
  EXPECT_EQ(file.integer("eps", 1).error().message, "eps is not an integer");
  EXPECT_EQ(file.integer("n", 8).error().message, "n is out of range; 8 is the least");
  EXPECT_EQ(file.integer("large", 0).error().message, "large is out of range; 0 is the least");
  EXPECT_EQ(file.texts("numbers").error().message, "numbers is not a list of texts");
  EXPECT_EQ(file.numbers("deep").error().message, "deep is not a list of numbers");
  EXPECT_EQ(file.text("n").error().where.file, kPath);
}

// Whatever is missing at the end, an error says where the file ends.
TEST_F(Gguf, ThatIsCutShortIsRefused) {
  const std::string whole = small().finish();
  for (std::size_t length = 0; length < whole.size() - 30; ++length) {  // after the data of "b" there is padding
    const auto file = open(whole.substr(0, length));
    ASSERT_FALSE(file.ok()) << length;
    EXPECT_EQ(file.error().kind, ErrorKind::corrupt) << file.error().message;
    EXPECT_NE(file.error().message.find(" byte"), std::string::npos) << file.error().message;
  }
  EXPECT_EQ(refused(whole.substr(0, 2)), "the file ends at byte 2, in its first four bytes from byte 0 on");
  const std::string tensor = refused(whole.substr(0, whole.size() - 32));
  EXPECT_TRUE(tensor.starts_with("tensor 'b' has 34 bytes from byte ")) << tensor;
}

TEST_F(Gguf, OfAnotherFormatIsRefused) {
  EXPECT_EQ(refused("{\"a\": 1}"), "this is no GGUF file: it begins with the bytes 7b226122");
  EXPECT_EQ(refused(GgufWriter(1).finish(), ErrorKind::unsupported),
            "this GGUF file has version 1; versions 2 and 3 are read");
  const auto newer = open(GgufWriter(4).finish());
  EXPECT_EQ(newer.error().code, ErrorCode::newer_version);
  EXPECT_EQ(refused(GgufWriter(0x03000000).finish(), ErrorKind::unsupported),
            "this GGUF file is big-endian; little-endian ones are read");
  EXPECT_EQ(GgufFile::open(*store_, "gone.gguf").error().kind, ErrorKind::not_found);
  ASSERT_TRUE(write_whole(*store_, kPath,
                          "version https://git-lfs.github.com/spec/v1\noid sha256:"
                          "0000000000000000000000000000000000000000000000000000000000000000\nsize 2471645608\n")
                  .ok());
  EXPECT_EQ(GgufFile::open(*store_, kPath).error().kind, ErrorKind::invalid);
}

std::string header(std::uint64_t tensors, std::uint64_t values) {
  return "GGUF" + GgufWriter::raw(3U) + GgufWriter::raw(tensors) + GgufWriter::raw(values);
}

TEST_F(Gguf, WithCountsThatItCannotHoldIsRefused) {
  EXPECT_EQ(refused(header(1, 0)), "the file would have 1 tensors, and 0 bytes are left at byte 24");
  EXPECT_EQ(refused(header(0, ~std::uint64_t{0}) + std::string(100, 'x')),
            "the file would have 18446744073709551615 metadata values, and 100 bytes are left at byte 24");
  EXPECT_EQ(refused(header(0, 1) + GgufWriter::raw(~std::uint64_t{0}) + std::string(20, 'x')),
            "a key at byte 24 would have 18446744073709551615 bytes, and 20 are left");
  const auto array = [](std::uint32_t type, std::uint64_t count) {
    return GgufWriter().value("k", 9, GgufWriter::raw(type) + GgufWriter::raw(count)).finish();
  };
  for (const std::uint32_t type : {0U, 8U, 9U, 12U}) {
    const std::string why = refused(array(type, std::uint64_t{1} << 61));
    EXPECT_TRUE(why.starts_with("the value of 'k' at byte 37 would have 2305843009213693952 elements")) << why;
  }
  std::string deep;
  for (int i = 0; i < 10; ++i) deep += GgufWriter::raw(9U) + GgufWriter::raw(std::uint64_t{1});
  const std::string why =
      refused(GgufWriter().value("k", 9, deep + std::string(64, '\0')).finish(), ErrorKind::unsupported);
  EXPECT_NE(why.find("has arrays in each other more than 4 deep"), std::string::npos) << why;
  const std::string many(4'000'001, 'x');
  const std::string long_one = refused(
      GgufWriter().value("k", 9, GgufWriter::raw(0U) + GgufWriter::raw(std::uint64_t{many.size()}) + many).finish(),
      ErrorKind::unsupported);
  EXPECT_NE(long_one.find("has 4000001 elements, and no more than 4000000 are read"), std::string::npos) << long_one;
}

TEST_F(Gguf, WithWrongValuesIsRefused) {
  EXPECT_EQ(refused(GgufWriter().value("k", 13, "x").finish()),
            "the value of 'k' at byte 33 is of type 13, which no value has");
  EXPECT_EQ(refused(GgufWriter().value("k", 7, "\2").finish()),
            "the value of 'k' at byte 37 is 2, neither true nor false");
  EXPECT_EQ(refused(GgufWriter().u32("k", 1).u32("k", 1).finish()), "the key 'k' at byte 41 stands there twice");
  EXPECT_EQ(refused(GgufWriter().u32("", 1).u32("k", 1).finish()), "a key at byte 24 is empty");
  EXPECT_EQ(refused(GgufWriter().u32("\xff", 1).finish()), "a key at byte 24 is not UTF-8");
  for (const std::uint32_t alignment : {0U, 3U, 1U << 31}) {
    const std::string why = refused(GgufWriter().u32("general.alignment", alignment).finish());
    EXPECT_TRUE(why.starts_with("general.alignment is ")) << why;
  }
  EXPECT_EQ(refused(GgufWriter().text("general.alignment", "8").finish()), "general.alignment is not an integer");
  EXPECT_TRUE(open(GgufWriter(3, 64).u32("general.alignment", 64).tensor("a", {1}, 0, "abcd").finish()).ok());
}

TEST_F(Gguf, WithWrongTensorsIsRefused) {
  const std::string four = floats({1, 2, 3, 4});
  const auto one = [&](const Shape& shape, std::uint32_t type, std::uint64_t offset) {
    return GgufWriter().tensor_at("a", shape, type, offset, four).finish();
  };
  EXPECT_TRUE(open(one({4}, 0, 0)).ok());
  EXPECT_EQ(refused(one({}, 0, 0) + std::string(9, 'x')), "tensor 'a' at byte 24 has 0 dims, not 1 to 4");
  EXPECT_EQ(refused(one({1, 1, 1, 1, 1}, 0, 0)), "tensor 'a' at byte 24 has 5 dims, not 1 to 4");
  EXPECT_EQ(refused(one({0}, 0, 0)), "tensor 'a' at byte 24 has a dim of size 0");
  EXPECT_EQ(refused(one({-1}, 0, 0)), "tensor 'a' at byte 24 has a dim of size 18446744073709551615");
  EXPECT_EQ(refused(one({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, 0)),
            "tensor 'a' at byte 24 would be F32[1099511627776, 1099511627776], more than a file can hold");
  EXPECT_EQ(refused(one({std::int64_t{1} << 62}, 0, 0)),
            "tensor 'a' at byte 24 would be F32[4611686018427387904], more than a file can hold");
  EXPECT_EQ(refused(one({33}, 2, 0)),
            "tensor 'a' at byte 24 is Q4_0 in rows of 33 elements, which are no blocks of 32");
  EXPECT_EQ(refused(one({4}, 0, 4)),
            "tensor 'a' at byte 24 has its data at 4, which is no multiple of the alignment 32");
  EXPECT_EQ(refused(one({4}, 0, std::uint64_t{1} << 63)),
            "tensor 'a' at byte 24 has its data at 9223372036854775808, which is beyond the end of the file");
  EXPECT_EQ(refused(one({9}, 0, 0)), "tensor 'a' has 36 bytes from byte 64 on, and the file ends at byte 96");
  EXPECT_EQ(refused(one({4}, 10, 0), ErrorKind::unsupported),
            "tensor 'a' at byte 24 is of type Q2_K, which is not read");
  EXPECT_EQ(refused(one({4}, 77, 0), ErrorKind::unsupported), "tensor 'a' at byte 24 is of type 77, which is not read");
  EXPECT_EQ(refused(GgufWriter().tensor("a", {4}, 0, four).tensor("a", {4}, 0, four).finish()),
            "tensor 'a' at byte 57 stands there twice");
  EXPECT_EQ(refused(GgufWriter().tensor_at("a", {16}, 0, 0, std::string(64, 'x')).tensor_at("b", {4}, 0, 32).finish()),
            "tensor 'b' begins at byte 128, inside 'a', which ends at byte 160");
}

}  // namespace
}  // namespace systole
