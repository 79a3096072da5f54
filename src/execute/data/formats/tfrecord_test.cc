// TFRecord and tf.train.Example: known bytes, what is written is read, every flipped byte and every cut
// is found and named, bad records are skipped and counted.

#include "execute/data/formats/tfrecord.h"

#include <gtest/gtest.h>

#include "execute/data/formats/bad_records.h"
#include "execute/data/formats/example.h"
#include "execute/data/formats/testing/some_records.h"
#include "execute/data/formats/wire.h"

namespace systole {
namespace {

// Its checksums by Python's `crc32c`.
const std::string kHello(
    "\x05\x00\x00\x00\x00\x00\x00\x00\xea\xb2\x04\x3e"
    "hello\xbb\x1f\x1c\x19",
    21);

RecordFile file_of(Store& store, const std::string& bytes, const std::string& name = "a.tfrecord") {
  write_whole(store, name, bytes).value();
  return {&store, name, "/data/" + name};
}

ReadThrough read_back(Store& store, const std::string& bytes, const RecordLimits& limits = {}) {
  auto reader = open_tfrecord(file_of(store, bytes), limits);
  if (!reader.ok()) return {{}, {to_string(reader.error())}};
  return read_through(**reader);
}

std::string written(Store& store, const std::vector<std::string>& records, TfrecordCompression compression) {
  write_records(*create_tfrecord(store, "w", compression).value(), records).value();
  return read_text(store, "w").value();
}

TEST(TfrecordTest, BytesAreThoseOfTheFormat) {
  const auto store = make_memory_store();
  EXPECT_EQ(written(*store, {"hello"}, TfrecordCompression::none), kHello);
  EXPECT_EQ(read_back(*store, kHello + kHello).records, (std::vector<std::string>{"hello", "hello"}));
  EXPECT_EQ(store->list("").value(), (std::vector<std::string>{"a.tfrecord", "w"}));
}

// Not the user's `w.partial`, nor that of another process that writes the same file.
TEST(TfrecordTest, WhatIsWrittenTouchesNoOtherFile) {
  const auto store = make_memory_store();
  write_whole(*store, "w.partial", std::string_view("mine")).value();
  const auto first = create_tfrecord(*store, "w", TfrecordCompression::none).value();
  first->add("one").value();
  {
    const auto second = create_tfrecord(*store, "w", TfrecordCompression::none).value();
    second->add("two").value();
  }
  first->finish().value();
  EXPECT_EQ(read_back(*store, read_text(*store, "w").value()).records, std::vector<std::string>{"one"});
  EXPECT_EQ(read_text(*store, "w.partial").value(), "mine");
}

TEST(TfrecordTest, WhatIsWrittenIsRead) {
  const auto store = make_memory_store();
  std::vector<std::string> records = some_records(500);
  records.push_back(std::string(3 << 20, 'z'));  // longer than the reader's buffer
  records.push_back("last");
  for (const auto compression : {TfrecordCompression::none, TfrecordCompression::gzip, TfrecordCompression::zlib}) {
    const ReadThrough read = read_back(*store, written(*store, records, compression));
    EXPECT_EQ(read.errors, std::vector<std::string>());
    EXPECT_TRUE(read.records == records) << static_cast<int>(compression);
  }
}

TEST(TfrecordTest, EveryFlippedByteIsFound) {
  const auto store = make_memory_store();
  const std::string whole = written(*store, {"first record", "second", ""}, TfrecordCompression::none);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] ^= 0x20;
    const ReadThrough read = read_back(*store, bad);
    ASSERT_EQ(read.errors.size(), 1U) << at;
    EXPECT_NE(read.errors[0].find("/data/a.tfrecord: error: record "), std::string::npos) << read.errors[0];
    EXPECT_NE(read.errors[0].find(", byte "), std::string::npos) << read.errors[0];
    if (at >= 12 && at < 28) { EXPECT_EQ(read.records, (std::vector<std::string>{"second", ""})) << at; }
  }
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == 28 || size == 50) continue;  // at the end of a record a cut cannot be seen
    const ReadThrough read = read_back(*store, whole.substr(0, size));
    ASSERT_EQ(read.errors.size(), 1U) << size;
    EXPECT_NE(read.errors[0].find("stops"), std::string::npos) << read.errors[0];
  }
}

TEST(TfrecordTest, RecordsOverTheLimitArePassedOver) {
  const auto store = make_memory_store();
  const std::string bytes = written(*store, {"a", std::string(2 << 20, 'b'), "c"}, TfrecordCompression::none);
  const ReadThrough read = read_back(*store, bytes, {Bytes(1000)});
  EXPECT_EQ(read.records, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(read.errors, std::vector<std::string>{"/data/a.tfrecord: error: record 1, byte 17: it is 2,097,152 bytes "
                                                  "long, more than 1000 B\n  hint: raise `largest_document`, or pass "
                                                  "over such records with `on_bad_record: skip`"});
}

TEST(TfrecordTest, BadRecordsAreSkippedUpToACap) {
  const auto store = make_memory_store();
  std::string bytes;
  for (int i = 0; i < 6; ++i) {
    std::string record = written(*store, {"record " + std::to_string(i)}, TfrecordCompression::none);
    if (i % 2 == 1) record.back() ^= 1;
    bytes += record;
  }
  const auto read = [&](BadRecordRule rule, BadRecordTally& tally) -> Result<int> {
    auto reader = open_tfrecord(file_of(*store, bytes)).value();
    DataRecord record;
    int good = 0;
    const auto use = [](const DataRecord& r) -> Status {
      if (r.bytes != "record 4") return Done{};
      return record_error(ErrorKind::invalid, {"f", r.index, r.byte}, "of no use");
    };
    while (TRY(next_good(*reader, record, rule, tally, use))) ++good;
    return good;
  };
  BadRecordTally tally;
  EXPECT_EQ(read({OnBadRecord::skip, 4}, tally).value(), 2);
  EXPECT_EQ(tally.skipped, 4);
  EXPECT_EQ(tally.first, "record 1, byte 24: the checksum of its data does not match");
  tally = {};
  const auto over = read({OnBadRecord::skip, 3}, tally);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().message.substr(0, 40), "more than 3 bad records; the first: reco");
  tally = {};
  EXPECT_EQ(read({OnBadRecord::error, 3}, tally).error().message.substr(0, 17), "record 1, byte 24");
}

std::string list_feature(std::uint32_t kind, const std::string& list) {
  std::string feature;
  put_bytes(feature, kind, list);
  return feature;
}

TEST(ExampleTest, FeaturesOfAllKinds) {
  std::string floats, ints, entry, features, example;
  put_bytes(floats, 1, std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8));  // packed 1.0, 2.0
  put_number(ints, 1, 7);                                                    // not packed
  put_number(ints, 1, static_cast<std::uint64_t>(-3));
  const auto add = [&](const char* name, const std::string& feature) {
    entry.clear();
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, feature);
    put_bytes(features, 1, entry);
  };
  add("y", list_feature(2, floats));
  add("n", list_feature(3, ints));
  add("y2", "");
  add("t", list_feature(1, std::string("\x0a\x02no", 4)));
  add("t", list_feature(1, std::string("\x0a\x03yes", 5)));  // the last one counts
  put_bytes(example, 1, features);
  const std::vector<Feature> parsed = parse_example(example).value();
  ASSERT_EQ(parsed.size(), 4U);
  EXPECT_EQ(parsed[0].name, "n");
  EXPECT_EQ(parsed[0].integers, (std::vector<std::int64_t>{7, -3}));
  EXPECT_EQ(parsed[1].bytes, std::vector<std::string_view>{"yes"});
  EXPECT_EQ(parsed[2].floats, (std::vector<float>{1.0F, 2.0F}));
  EXPECT_EQ(bytes_of_example(example, "t").value(), "yes");
  EXPECT_EQ(
      to_string(bytes_of_example(example, "n").error()),
      "error: feature 'n' of the Example holds 2 integers, not one byte string\n  hint: name a feature that holds "
      "the text with `field:`");
  EXPECT_EQ(bytes_of_example(example, "text").error().message, "the Example has no feature 'text'; it has n, t, y, y2");
}

TEST(ExampleTest, WhatIsMadeIsParsedAndNothingElse) {
  const std::vector<RecordField> fields{{"text", "hello"}, {"id", std::string_view("\0\xff", 2)}};
  const std::string example = make_example(fields);
  EXPECT_EQ(bytes_of_example(example, "text").value(), "hello");
  EXPECT_EQ(bytes_of_example(example, "id").value(), fields[1].bytes);
  for (std::size_t size = 1; size < example.size(); ++size)
    EXPECT_FALSE(bytes_of_example(std::string_view(example).substr(0, size), "text").ok()) << size;
  EXPECT_EQ(bytes_of_example("just text", "text").error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace systole
