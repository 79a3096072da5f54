// ArrayRecord: the bytes of its own library, what is written is read in any order, every flipped byte is found or is
// padding, lying sizes are refused.

#include "execute/data/formats/array_record.h"

#include <gtest/gtest.h>

#include <random>

#include "execute/data/formats/highway_hash.h"
#include "execute/data/formats/riegeli.h"
#include "execute/data/formats/testing/some_records.h"

namespace systole {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

RecordFile file_of(Store& store, const std::string& bytes) {
  write_whole(store, "a.array_record", bytes).value();
  return {&store, "a.array_record", "/data/a.array_record"};
}

std::string written(Store& store, const std::vector<std::string>& records, const ArrayRecordOptions& options) {
  write_records(*create_array_record(store, "w", options).value(), records).value();
  return read_text(store, "w").value();
}

ReadThrough read_back(Store& store, const std::string& bytes) {
  auto reader = open_array_record(file_of(store, bytes));
  if (!reader.ok()) return {{}, {to_string(reader.error())}};
  return read_through(**reader);
}

TEST(HighwayHashTest, IsThatOfRiegeliAndOfItsSlowTwin) {
  // The first 64 bytes of every Riegeli file (its specification) hold three hashes.
  EXPECT_EQ(riegeli_hash({}), 0x72c3b1e9c0139fe1U);
  EXPECT_EQ(riegeli_hash(bytes_of(std::string("\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", 16))), 0x3f4a880dd170af83U);
  const HighwayKey key{1, 2, 3, 4};
  const std::string text = some_records(1000)[500] + std::string(300, 'q');
  for (std::size_t size = 0; size < 300; ++size) {
    const auto bytes = bytes_of(text).first(size);
    ASSERT_EQ(highway_hash64(bytes, key), highway_hash64_portable(bytes, key)) << size;
  }
}

TEST(ArrayRecordTest, BeginsAsEveryRiegeliFile) {
  const auto store = make_memory_store();
  const std::string bytes = written(*store, {}, {});
  EXPECT_EQ(
      bytes.substr(0, 64),
      std::string("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x91\xba\xc2\x3c\x92\x87\xe1\xa9"
                  "\0\0\0\0\0\0\0\0\xe1\x9f\x13\xc0\xe9\xb1\xc3\x72\x73\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                  64));
  EXPECT_EQ(read_back(*store, bytes).errors, std::vector<std::string>());
}

TEST(ArrayRecordTest, WhatIsWrittenIsReadInAnyOrder) {
  const auto store = make_memory_store();
  const std::vector<std::string> records = some_records(400);
  for (const std::int64_t group : {1, 3, 256, 1000}) {
    for (const int level : {0, 3}) {
      for (const bool pad : {false, true}) {
        if (pad && group == 1) continue;  // 25 MB
        const std::string bytes = written(*store, records, {group, level, pad});
        const ReadThrough read = read_back(*store, bytes);
        ASSERT_EQ(read.errors, std::vector<std::string>()) << group << " " << level;
        ASSERT_TRUE(read.records == records) << group << " " << level;
        auto reader = open_array_record(file_of(*store, bytes)).value();
        ASSERT_EQ(reader->count(), 400);
        std::mt19937 random(3);
        std::vector<std::int64_t> indices;
        DataRecord record;
        for (int i = 0; i < 300; ++i) {
          indices.push_back(static_cast<std::int64_t>(random() % records.size()));
          reader->read(indices.back(), record).value();
          ASSERT_EQ(record.index, indices.back());
          ASSERT_TRUE(record.bytes == records[static_cast<std::size_t>(indices.back())]);
          if (i % 7 == 0) {
            ASSERT_TRUE(reader->next(record).value());  // is independent
          }
        }
        std::vector<std::string> got(indices.size());
        const auto each = [&](std::size_t place, const DataRecord& r) -> Status {
          got[place] = r.bytes;
          return Done{};
        };
        reader->read_group(indices, each).value();
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(got[i] == records[static_cast<std::size_t>(indices[i])]) << i;
      }
    }
  }
}

TEST(ArrayRecordTest, AFlippedByteIsFoundOrIsPadding) {
  const auto store = make_memory_store();
  std::vector<std::string> records = some_records(40);
  const std::string whole = written(*store, records, {8, 3, false});
  std::mt19937 random(1);
  int found = 0, padding = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bad = whole;
    // The signature and the records; then the postscript and what is before it, padding for the most part.
    const std::size_t at = i < 1000 ? random() % 3000 : whole.size() - 65536 * (i % 2 + 1) + random() % 1000;
    bad[at] ^= static_cast<char>(1 << random() % 8);
    const ReadThrough read = read_back(*store, bad);
    if (!read.errors.empty()) {
      ++found;
      continue;
    }
    ++padding;
    ASSERT_GE(i, 1000) << at;
    ASSERT_TRUE(read.records == records) << at;
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(padding, 100);
}

TEST(ArrayRecordTest, ADamagedChunkLosesItsRecordsOnly) {
  const auto store = make_memory_store();
  const std::vector<std::string> records(20, "the same text again and again");
  std::string bytes = written(*store, records, {4, 0, false});
  bytes[bytes.find("the same") + 200] ^= 1;  // the second chunk
  const ReadThrough read = read_back(*store, bytes);
  EXPECT_EQ(read.records.size(), 16U);
  ASSERT_EQ(read.errors.size(), 4U);
  EXPECT_EQ(read.errors[0],
            "/data/a.array_record: error: record 4, byte 226: the checksum of a chunk's data does not match\n  hint: "
            "fetch the file again, or pass over such records with `on_bad_record: skip`");
}

TEST(ArrayRecordTest, CutAndForeignFilesAreRefused) {
  const auto store = make_memory_store();
  const std::string bytes = written(*store, some_records(50), {});
  for (const std::size_t size : {std::size_t{1}, std::size_t{64}, bytes.size() - 65536, bytes.size() - 1}) {
    const ReadThrough read = read_back(*store, bytes.substr(0, size));
    ASSERT_EQ(read.errors.size(), 1U);
    EXPECT_NE(read.errors[0].find("this is no ArrayRecord"), std::string::npos) << read.errors[0];
  }
  EXPECT_NE(read_back(*store, std::string(131072, 'x')).errors.at(0).find("this is no ArrayRecord"), std::string::npos);
}

// A chunk with this header and data, as SimpleChunk::decode takes it.
std::string chunk_bytes(ChunkType type, const std::string& data, std::uint64_t records, std::uint64_t decoded) {
  const auto store = make_memory_store();
  ChunkWriter writer(PartialFile::create(*store, "c").value());
  writer.write(ChunkType::signature, "", 0, 0).value();
  writer.write(type, data, records, decoded).value();
  writer.finish().value();
  return read_text(*store, "c").value().substr(64);
}

TEST(ArrayRecordTest, LyingAndForeignChunksAreRefused) {
  const auto refused = [](ChunkType type, const std::string& data, std::uint64_t records, std::uint64_t decoded) {
    SimpleChunk chunk;
    return chunk.decode(bytes_of(chunk_bytes(type, data, records, decoded)), Bytes(1 << 30), {"f", 0, 64})
        .error()
        .message;
  };
  const std::string two(
      "\0\x02\x01\x02"
      "abb",
      7);
  SimpleChunk chunk;
  const std::string good = chunk_bytes(ChunkType::simple, two, 2, 3);
  chunk.decode(bytes_of(good), Bytes(1 << 30), {}).value();
  EXPECT_EQ(chunk[1], "bb");
  EXPECT_EQ(refused(ChunkType::transposed, two, 2, 3),
            "record 0, byte 64: a transposed chunk of Riegeli, whose layout is not documented, is not read");
  EXPECT_EQ(refused(ChunkType::simple, "b" + two.substr(1), 2, 3),
            "record 0, byte 64: records compressed by Brotli are not read");
  EXPECT_EQ(refused(ChunkType::simple, "s" + two.substr(1), 2, 3),
            "record 0, byte 64: records compressed by Snappy are not read");
  EXPECT_EQ(refused(ChunkType::simple, two, 2, 4), "record 0, byte 64: the sizes of its records do not fit it");
  EXPECT_EQ(refused(ChunkType::simple, two, 3, 3), "record 0, byte 64: it has fewer sizes than records");
  EXPECT_EQ(refused(ChunkType::simple, two, 2, std::uint64_t{1} << 29),
            "record 0, byte 64: a chunk of 7 bytes says that it holds 2 records of 536870912 bytes in all");
  EXPECT_EQ(refused(ChunkType::simple, two, 1U << 20, 3),
            "record 0, byte 64: a chunk of 7 bytes says that it holds 1048576 records of 3 bytes in all");
  // A few thousand bytes that would take gigabytes for the sizes of so many.
  EXPECT_EQ(refused(ChunkType::simple, std::string(60'000, '\0'), 200'000'000, 0),
            "record 0, byte 64: a chunk of 60,000 bytes says that it holds 200000000 records of 0 bytes in all");
}

}  // namespace
}  // namespace systole
