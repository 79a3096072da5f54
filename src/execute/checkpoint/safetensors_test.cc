#include "execute/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "execute/checkpoint/inspect.h"
#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/base/testing/places.h"

namespace systole::checkpoint {
namespace {

std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes,
                               std::optional<std::uint64_t> size = {}) {
  const std::uint64_t claimed = size.value_or(header.size());
  std::vector<std::byte> bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(claimed >> (8 * i) & 0xff));
  for (char c : header) bytes.push_back(static_cast<std::byte>(c));
  bytes.resize(bytes.size() + data_bytes);
  return bytes;
}

Result<SafetensorsHeader> parse(std::string_view header, std::size_t data_bytes,
                                std::optional<std::uint64_t> size = {}) {
  const auto bytes = file_of(header, data_bytes, size);
  return parse_safetensors_header(bytes, static_cast<std::int64_t>(bytes.size()), "x.safetensors");
}

// The bytes that the published format prescribes, written out by hand.
TEST(Safetensors, WritesThePublishedFormat) {
  auto store = make_memory_store();
  const HostTensor b(DType::bf16, {2}, std::vector<double>{1, -2}), a(DType::f32, {1, 2}, std::vector<double>{1, 2});
  ASSERT_TRUE(write_safetensors(*store, "m.safetensors",
                                {SafetensorsSource::of("b", DType::bf16, {2}, b.bytes()),
                                 SafetensorsSource::of("a", DType::f32, {1, 2}, a.bytes())},
                                {{"format", "pt"}}));
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(padded);
  expected += header + std::string(padded - header.size(), ' ');
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x00\x40\x80\x3f\x00\xc0", 12);
  EXPECT_EQ(read_text(*store, "m.safetensors").value(), expected);
}

TEST(Safetensors, RoundTripsEveryDType) {
  auto store = make_memory_store();
  std::vector<HostTensor> tensors;
  std::vector<SafetensorsSource> sources;
  for (int d = 0; d < kNumDTypes; ++d) tensors.push_back(tiny_value(d, d, static_cast<DType>(d), {3, 2}));
  tensors.push_back(tiny_value(1, 1, DType::f32, {}));
  tensors.push_back(tiny_value(1, 1, DType::f32, {4, 0}));
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    sources.push_back(
        SafetensorsSource::of(fmt::format("t\"{}", t), tensors[t].dtype(), tensors[t].shape(), tensors[t].bytes()));
  }
  ASSERT_TRUE(write_safetensors(*store, "m", sources, {}));
  const auto file = SafetensorsFile::open(*store, "m");
  ASSERT_TRUE(file) << to_string(file.error());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::string name = fmt::format("t\"{}", t);
    const SafetensorsEntry* entry = file->header().find(name);
    ASSERT_TRUE(entry);
    HostTensor read(entry->dtype, entry->shape);
    ASSERT_TRUE(file->read(name, read.bytes()));
    EXPECT_EQ(read, tensors[t]);
    EXPECT_EQ((file->header().data_start + entry->begin) % size_of(entry->dtype), 0) << "aligned";
  }
  std::vector<std::byte> two(8);
  ASSERT_TRUE(file->read_elements("t\"1", 3, two));
  EXPECT_TRUE(std::equal(two.begin(), two.end(), tensors[1].bytes().begin() + 12));
  EXPECT_FALSE(file->read_elements("t\"1", 5, two));
  EXPECT_FALSE(file->read_elements("t\"1", -1, two));
  EXPECT_FALSE(file->read("t\"1", two));
  EXPECT_EQ(file->read("t1", two).error().kind, ErrorKind::not_found);
}

// golden/reference.safetensors was written by Python's safetensors 0.8.0 (safetensors.numpy.save_file): we can read it,
// and we write the same bytes for the same tensors.
TEST(Safetensors, EqualsTheReferenceImplementation) {
  auto golden = open_posix_store(std::string(SYSTOLE_SOURCE_DIR) + "/src/execute/checkpoint/golden");
  ASSERT_TRUE(golden) << to_string(golden.error());
  const std::string name = "reference.safetensors";
  const auto file = SafetensorsFile::open(**golden, name);
  ASSERT_TRUE(file) << to_string(file.error());
  const std::vector<std::pair<std::string, HostTensor>> expected = {
      {"b.weight", HostTensor(DType::f32, {2, 3}, std::vector<double>{0, 0.25, 0.5, 0.75, 1, 1.25})},
      {"a.ids", HostTensor(DType::i64, {3}, std::vector<double>{1, -2, 3})},
      {"c.half", HostTensor(DType::f16, {2}, std::vector<double>{0.5, -1.5})},
      {"d.mask", HostTensor(DType::boolean, {3}, std::vector<double>{1, 0, 1})},
      {"e.scalar", HostTensor(DType::f64, {}, std::vector<double>{2.5})},
      {"f.bytes", HostTensor(DType::u8, {5}, std::vector<double>{0, 1, 2, 3, 4})}};
  std::vector<SafetensorsSource> sources;
  for (const auto& [tensor, value] : expected) {
    HostTensor read(value.dtype(), value.shape());
    ASSERT_TRUE(file->read(tensor, read.bytes())) << tensor;
    EXPECT_EQ(read, value) << tensor;
    sources.push_back(SafetensorsSource::of(tensor, value.dtype(), value.shape(), value.bytes()));
  }
  auto store = make_memory_store();
  ASSERT_TRUE(write_safetensors(*store, name, std::move(sources), {{"format", "np"}}));
  EXPECT_EQ(read_all(*store, name).value(), read_all(**golden, name).value());
}

TEST(Safetensors, ReadsPaddingMetadataAndAnyOrder) {
  const auto header = parse(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
      3);
  ASSERT_TRUE(header) << to_string(header.error());
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->metadata.at("k"), "v");
  EXPECT_TRUE(parse("{}", 0));
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const auto kind = [](const Result<SafetensorsHeader>& header) {
    return header ? std::string("accepted") : std::string(name_of(header.error().kind));
  };
  const auto corrupt = std::string(name_of(ErrorKind::corrupt));
  const std::string one = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  ASSERT_TRUE(parse(one, 4));
  EXPECT_EQ(kind(parse_safetensors_header({}, 0, "x")), corrupt);
  EXPECT_EQ(kind(parse(one, 4, ~std::uint64_t{0})), corrupt);
  EXPECT_EQ(kind(parse(one, 4, std::uint64_t{1} << 63)), corrupt);
  EXPECT_EQ(kind(parse(one, 4, one.size() + 5)), corrupt);
  EXPECT_EQ(kind(parse(one, 3)), corrupt);
  EXPECT_EQ(kind(parse(one, 5)), corrupt) << "bytes that no tensor owns";
  EXPECT_EQ(kind(parse(" " + one, 4)), corrupt);
  EXPECT_EQ(kind(parse("", 4)), corrupt);
  EXPECT_EQ(kind(parse("[]", 0)), corrupt);
  EXPECT_EQ(kind(parse("{\"a\":1}", 0)), corrupt);
  EXPECT_EQ(kind(parse("{\"a\":{}}", 0)), corrupt);
  EXPECT_EQ(kind(parse(R"({"__metadata__":{"k":1}})", 0)), corrupt);
  std::string crowded = "{\"a\":{\"dtype\":\"F32\",\"shape\":[0";
  for (int i = 0; i < 2'000'000; ++i) crowded += ",0";
  EXPECT_EQ(kind(parse(crowded + "],\"data_offsets\":[0,0]}}", 0)), corrupt) << "a tree of gigabytes";
  const auto tensor = [](std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":{},"data_offsets":{}}}}})", shape, offsets);
  };
  for (const auto& [shape, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"[4]", "[1,5]"},
                                                        {"[4]", "[4,0]"},
                                                        {"[4]", "[-4,0]"},
                                                        {"[4]", "[0,9223372036854775807]"},
                                                        {"[4]", "[0]"},
                                                        {"[4]", "[0,4,8]"},
                                                        {"[3]", "[0,4]"},
                                                        {"[-4]", "[0,4]"},
                                                        {"[4294967296,4294967296]", "[0,4]"},
                                                        {"[4.0]", "[0,4]"},
                                                        {"4", "[0,4]"},
                                                        {"[\"4\"]", "[0,4]"},
                                                        {"[1e30]", "[0,4]"},
                                                        {"[4]", "[0,18446744073709551620]"}}) {
    EXPECT_EQ(kind(parse(tensor(shape, offsets), 4)), corrupt) << shape << offsets;
  }
  EXPECT_EQ(
      kind(parse(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          8)),
      corrupt)
      << "a name twice";
  EXPECT_EQ(
      kind(parse(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
          4)),
      corrupt)
      << "overlap";
  EXPECT_EQ(
      kind(parse(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
          9)),
      corrupt)
      << "gap";
}

TEST(Safetensors, UnknownDTypesAreRefusedByName) {
  const auto header = parse(R"({"w":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", 8);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind, ErrorKind::unsupported);
  EXPECT_NE(header.error().message.find("'w' has the dtype 'C64'"), std::string::npos) << header.error().message;
}

TEST(Safetensors, WritersMistakesAreRefused) {
  auto store = make_memory_store();
  const HostTensor a(DType::f32, {2});
  const auto write = [&](std::vector<SafetensorsSource> sources) {
    return write_safetensors(*store, "m", std::move(sources), {});
  };
  EXPECT_EQ(write({SafetensorsSource::of("a", DType::f32, {2}, a.bytes()),
                   SafetensorsSource::of("a", DType::f32, {2}, a.bytes())})
                .error()
                .kind,
            ErrorKind::invalid);
  EXPECT_EQ(write({SafetensorsSource::of("__metadata__", DType::f32, {2}, a.bytes())}).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(write({SafetensorsSource::of("a", DType::f32, {3}, a.bytes())}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(write({SafetensorsSource::of("a", DType::f32, {1}, a.bytes())}).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(store->list("")->empty()) << "nothing is left behind";
}

TEST(Safetensors, ExportsACheckpointsParameters) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  save_tiny(folder, 10, tiny_options()).value();
  const auto checkpoint = open_newest(folder)->checkpoint;
  ASSERT_TRUE(export_safetensors(checkpoint, Role::parameter, *store, "out.safetensors"));
  const auto file = SafetensorsFile::open(*store, "out.safetensors");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->header().metadata.at("step"), "10");
  std::size_t exported = 0;
  for (const TinyTensor& tensor : tiny_state(10)) {
    if (tensor.role != Role::parameter) continue;
    ++exported;
    HostTensor read(tensor.value.dtype(), tensor.value.shape());
    ASSERT_TRUE(file->read(tensor.name, read.bytes())) << tensor.name;
    EXPECT_EQ(read, tensor.value);
  }
  EXPECT_EQ(file->header().tensors.size(), exported);
}

}  // namespace
}  // namespace systole::checkpoint
