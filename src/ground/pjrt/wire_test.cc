#include "ground/pjrt/wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ground/pjrt/compile_options.h"

namespace systole::pjrt {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// The examples of protobuf.dev/programming-guides/encoding.
TEST(Wire, ExamplesOfTheFormatsOwnPage) {
  EXPECT_EQ(hex(WireWriter().integer(1, 150).text()), "089601");
  EXPECT_EQ(hex(WireWriter().bytes(2, "testing").text()), "120774657374696e67");
  EXPECT_EQ(hex(WireWriter().message(3, WireWriter().integer(1, 150)).text()), "1a03089601");
  EXPECT_EQ(hex(WireWriter().packed(6, std::vector<std::int64_t>{3, 270, 86942}).text()), "3206038e029ea705");
  EXPECT_EQ(hex(WireWriter().integer(1, -2).text()), "08feffffffffffffffff01");
  EXPECT_EQ(hex(WireWriter().f32(1, 1.0F).text()), "0d0000803f");
  EXPECT_EQ(hex(WireWriter().f64(1, 1.0).text()), "09000000000000f03f");
}

TEST(Wire, ReadsWhatItWrote) {
  const std::int64_t integers[] = {
      0, 1, 127, 128, -1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  WireWriter writer;
  for (const std::int64_t value : integers) writer.integer(536870911, value);
  writer.f64(7, -0.25).f32(8, 0.1F).bytes(9, std::string(300, 'x')).packed(10, integers);

  WireReader reader(writer.text());
  for (const std::int64_t value : integers) {
    const std::optional<WireField> field = reader.next().value();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->number, 536870911);
    EXPECT_EQ(field->integer().value(), value);
    EXPECT_EQ(field->bytes().error().kind, ErrorKind::corrupt);
  }
  EXPECT_EQ(reader.next().value()->real().value(), -0.25);
  EXPECT_EQ(reader.next().value()->real().value(), static_cast<double>(0.1F));
  EXPECT_EQ(reader.next().value()->bytes().value().size(), 300U);
  const std::vector<std::int64_t> packed = unpacked(reader.next().value()->bytes().value()).value();
  EXPECT_EQ(packed, std::vector<std::int64_t>(std::begin(integers), std::end(integers)));
  EXPECT_FALSE(reader.next().value());
}

TEST(Wire, WhatIsWrongIsSaidWithItsPlace) {
  const auto said = [](std::string_view message) -> std::string {
    WireReader reader(message);
    for (int i = 0; i < 100; ++i) {
      const Result<std::optional<WireField>> field = reader.next();
      if (!field.ok()) {
        EXPECT_EQ(field.error().kind, ErrorKind::corrupt);
        EXPECT_FALSE(reader.next().value()) << "reads on after an error";
        return field.error().message;
      }
      if (!*field) return "";
    }
    return "no end";
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(said("\x08\x96"sv), "a number that is cut off at byte 1 of a message of 2");
  EXPECT_EQ(said("\x12\x07tes"sv), "a field that is longer than what is left at byte 2 of a message of 5");
  EXPECT_EQ(said("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv),
            "a field that is longer than what is left at byte 11 of a message of 11");
  EXPECT_EQ(said("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv),
            "a number of more than 64 bits at byte 1 of a message of 11");
  EXPECT_EQ(said("\x00\x00"sv), "no field's number at byte 1 of a message of 2");
  EXPECT_EQ(said("\x0b"sv), "a field of a kind that proto3 does not have at byte 1 of a message of 1");
  EXPECT_EQ(said("\x0d\x01\x02\x03"sv), "a number that is cut off at byte 1 of a message of 4");
  EXPECT_EQ(unpacked("\xff"sv).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(unpacked("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv).error().kind, ErrorKind::corrupt);
}

// Random bytes are read to the end or an error, and never past the message.
TEST(Wire, RandomBytesNeverReadPastTheEnd) {
  std::mt19937_64 random(6);
  for (int run = 0; run < 20'000; ++run) {
    std::string message(random() % 40, '\0');
    for (char& c : message) c = static_cast<char>(random() % (run % 2 == 0 ? 256 : 32));
    WireReader reader(message);
    std::size_t fields = 0;
    for (;; ++fields) {
      ASSERT_LE(fields, message.size());
      const Result<std::optional<WireField>> field = reader.next();
      if (!field.ok() || !*field) break;
      const std::string_view content = (*field)->content;
      if (content.empty()) continue;
      ASSERT_GE(content.data(), message.data());
      ASSERT_LE(content.data() + content.size(), message.data() + message.size());
      (void)unpacked(content);
    }
  }
}

TEST(CompileOptions, OneDevice) {
  // executable_build_options { device_ordinal -1, num_replicas 1, num_partitions 1 }
  EXPECT_EQ(hex(serialized({})), "1a0f08ffffffffffffffffff0120012801");
}

TEST(CompileOptions, DevicesAreGivenPartitionByPartition) {
  CompileOptions options;
  options.replicas = 2;
  options.partitions = 3;
  options.devices = {0, 1, 2, 3, 4, 5};
  options.spmd = options.shardy = true;
  EXPECT_EQ(hex(serialized(options)),
            "1a2c"
            "08ffffffffffffffffff01"  // device_ordinal
            "20022803"                // replicas, partitions
            "3001"                    // spmd
            "4a16"                    // device_assignment, 22 bytes long
            "08021003"                // 2 × 3
            "1a040a020003"            // partition 0 on devices 0 and 3
            "1a040a020104"
            "1a040a020205"
            "980101");  // shardy
  options.devices.pop_back();
  EXPECT_THROW(serialized(options), Failure);
}

TEST(CompileOptions, FlagsAreReadAsPlainYamlIs) {
  EXPECT_EQ(option_value("true").value(), OptionValue(true));
  EXPECT_EQ(option_value("98304").value(), OptionValue(std::int64_t{98304}));
  EXPECT_EQ(option_value("0.5").value(), OptionValue(0.5));
  EXPECT_EQ(option_value("ENABLED").value(), OptionValue(std::string("ENABLED")));
  EXPECT_EQ(option_value("").value(), OptionValue(std::string()));
  EXPECT_FALSE(option_value("1e999").ok());
  for (const char* text : {"true", "98304", "0.5", "ENABLED", ""})
    EXPECT_EQ(to_string(option_value(text).value()), text);
}

// Requested flags override defaults of the same name; other defaults stay.
TEST(CompileOptions, FlagsOverFlags) {
  const CompilerFlags defaults{{"a", std::int64_t{1}}, {"b", true}};
  EXPECT_EQ(flags_over(defaults, {}), defaults);
  EXPECT_EQ(flags_over({}, defaults), defaults);
  EXPECT_EQ(flags_over(defaults, {{"c", 2.0}, {"a", std::int64_t{3}}}),
            (CompilerFlags{{"b", true}, {"c", 2.0}, {"a", std::int64_t{3}}}));
}

TEST(CompileOptions, FlagsKeepTheirType) {
  CompileOptions options;
  options.flags = {{"a", std::string("x")}, {"b", true}, {"c", std::int64_t{5}}, {"d", 1.0}};
  const std::string text = serialized(options);
  EXPECT_EQ(hex(text.substr(17)),
            "3a08"
            "0a0161"
            "1203"
            "0a0178"
            "3a07"
            "0a0162"
            "1202"
            "1001"
            "3a07"
            "0a0163"
            "1202"
            "1805"
            "3a0e"
            "0a0164"
            "1209"
            "21000000000000f03f");
}

}  // namespace
}  // namespace systole::pjrt
