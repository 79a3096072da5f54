#include "execute/data/formats/webdataset.h"

#include <gtest/gtest.h>

#include <cstring>

#include "execute/data/formats/bad_records.h"
#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/tar_header.h"
#include "execute/data/formats/testing/some_records.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

std::string padded(std::string bytes) {
  bytes.resize(static_cast<std::size_t>(padded_to_block(static_cast<std::int64_t>(bytes.size()))), '\0');
  return bytes;
}

// Puts the right checksum into a header.
void mend(char* block) {
  int sum = 8 * ' ';
  for (int i = 0; i < 512; ++i) sum += i < 148 || i >= 156 ? static_cast<unsigned char>(block[i]) : 0;
  fmt::format_to(block + 148, "{:06o}", sum);
}

// A member as tar_headers_of writes it, with another type or with ustar's prefix.
std::string member(std::string_view name, std::string_view bytes, char type = '0', std::string_view prefix = "") {
  std::string headers = tar_headers_of(name, static_cast<std::int64_t>(bytes.size()));
  char* block = headers.data() + headers.size() - 512;
  block[156] = type;
  std::memcpy(block + 345, prefix.data(), prefix.size());
  mend(block);
  return headers + padded(std::string(bytes));
}
const std::string kEnd(1024, '\0');

class WebDataset : public testing::Test {
 protected:
  std::unique_ptr<RecordReader> open(const std::string& path, WebDatasetOptions options = {}) {
    return open_webdataset({store_.get(), path, path}, options).value();
  }
  void put(const std::string& path, std::string_view bytes) { write_whole(*store_, path, bytes).value(); }

  std::string message(const std::string& path, bool index = false) {
    return first_error(open_webdataset({store_.get(), path, path}, {.index = index}));
  }
  std::string of(const std::string& bytes) {
    put("bad.tar", bytes);
    const std::string said = message("bad.tar");
    EXPECT_EQ(message("bad.tar", true).empty(), said.empty()) << said;
    return said;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
};

std::vector<Fields> samples(int count, std::size_t largest) {
  PhiloxStream random(3);
  std::vector<Fields> made;
  for (int i = 0; i < count; ++i) {
    std::string text(random.below(static_cast<std::uint32_t>(largest)), 'x');
    for (char& c : text) c = static_cast<char>(random.below(256));
    made.push_back({{"__key__", fmt::format("dir/{:05}", i)}, {"cls", std::to_string(i % 10)}, {"txt", text}});
  }
  return made;
}

void write(Store& store, const std::string& path, const std::vector<Fields>& records) {
  const auto writer = create_webdataset(store, path).value();
  for (const Fields& fields : records) {
    std::vector<RecordField> views;
    for (const auto& [name, bytes] : fields) views.push_back({name, bytes});
    writer->add_fields(views).value();
  }
  writer->finish().value();
}

TEST_F(WebDataset, ReadsBackWhatItWroteInOrderAndAtRandom) {
  const std::vector<Fields> made = samples(500, 5000);
  for (const char* path : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.zst"}) {
    write(*store_, path, made);
    const auto reader = open(path);
    EXPECT_EQ(all_fields(*reader), made) << path;
    EXPECT_EQ(reader->has_index(), std::string_view(path) == "a.tar");
  }
  const auto reader = open("a.tar");
  ASSERT_EQ(reader->count(), 500);
  DataRecord record;
  for (const int i : {499, 0, 250, 251, 3}) {
    reader->read(i, record).value();
    EXPECT_EQ(fields_of(*reader, record), made[static_cast<std::size_t>(i)]) << i;
  }
  const std::vector<std::int64_t> group{7, 499, 7, 0, 8};
  std::vector<Fields> got(group.size());
  reader
      ->read_group(group,
                   [&](std::size_t i, const DataRecord& one) -> Status {
                     got[i] = fields_of(*reader, one);
                     return Done{};
                   })
      .value();
  for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(got[i], made[static_cast<std::size_t>(group[i])]);
}

TEST_F(WebDataset, LargeMembersAndReadingAmidRandomReads) {
  const std::vector<Fields> made = samples(12, 900'000);
  write(*store_, "a.tar", made);
  const auto reader = open("a.tar");
  DataRecord record;
  for (std::size_t i = 0; i < made.size(); ++i) {
    ASSERT_TRUE(reader->next(record).value());
    EXPECT_EQ(fields_of(*reader, record), made[i]);
    reader->read(static_cast<std::int64_t>(i * 5 % 12), record).value();
    EXPECT_EQ(fields_of(*reader, record), made[i * 5 % 12]);
  }
}

TEST_F(WebDataset, NamesOfUstarPaxAndGnu) {
  const std::string longer = std::string(300, 'e') + "/" + std::string(200, 'm'), wide = "\xC3\xB6/\xE2\x82\xAC";
  write(*store_, "a.tar", {{{"__key__", wide}, {"txt", "1"}}, {{"__key__", longer}, {"txt", "2"}, {"wav", ""}}});
  EXPECT_EQ(all_fields(*open("a.tar"))[1], (Fields{{"__key__", longer}, {"txt", "2"}, {"wav", ""}}));
  EXPECT_EQ(all_fields(*open("a.tar"))[0][0].second, wide);

  const std::string deep(150, 'd');
  put("ustar.tar", member("n.txt", "0", '0', deep) + kEnd);
  EXPECT_EQ(all_fields(*open("ustar.tar")), (std::vector<Fields>{{{"__key__", deep + "/n"}, {"txt", "0"}}}));

  const std::string gnu = member("././@LongLink", longer + ".txt" + std::string(1, '\0'), 'L') + member("cut", "3");
  put("gnu.tar", gnu + kEnd);
  EXPECT_EQ(all_fields(*open("gnu.tar")), (std::vector<Fields>{{{"__key__", longer}, {"txt", "3"}}}));

  // The size of the pax header counts, and a global one without name or size is passed over.
  const std::string sized = member("pax_global_header", "20 comment=01234567\n", 'g') +
                            member("x", "10 size=4\n", 'x') + tar_headers_of("p.txt", 0) + padded("four");
  put("pax.tar", sized + kEnd);
  EXPECT_EQ(all_fields(*open("pax.tar")), (std::vector<Fields>{{{"__key__", "p"}, {"txt", "four"}}}));
}

TEST_F(WebDataset, GroupsAsWebdatasetDoes) {
  put("a.tar", member("./", "", '5') + member("./a.JPG", "1") + member("./a.cls.txt", "2") +
                   member("README", "no dot") + member("./.hidden", "h") + member("./b.jpg", "3") +
                   member("./a.jpg", "4") + kEnd);
  const std::vector<Fields> expected{{{"__key__", "./a"}, {"jpg", "1"}, {"cls.txt", "2"}},
                                     {{"__key__", "./b"}, {"jpg", "3"}},
                                     {{"__key__", "./a"}, {"jpg", "4"}}};
  EXPECT_EQ(all_fields(*open("a.tar")), expected);
  EXPECT_EQ(open("a.tar")->count(), 3);
  DataRecord record;
  const auto reader = open("a.tar");
  ASSERT_TRUE(reader->next(record).value());
  EXPECT_EQ(
      to_string(reader->field(record, "text").error()),
      "a.tar: error: record 0, byte 512: the sample has no field 'text'; it has: cls.txt, jpg\n  hint: field: cls.txt");
}

TEST_F(WebDataset, RefusesWhatNoHonestShardHas) {
  const std::string good = member("a.txt", "good");
  EXPECT_NE(of(good + member("b.txt", "", '2') + kEnd).find("record 1, byte 1,024: 'b.txt' is a symbolic link"),
            std::string::npos);
  EXPECT_NE(of(member("b.txt", "", '1') + kEnd).find("a hard link"), std::string::npos);
  EXPECT_NE(of(member("x/../../b.txt", "") + kEnd).find("leads out of the folder"), std::string::npos);
  EXPECT_NE(of(member("/etc/b.txt", "") + kEnd).find("leads out of the folder"), std::string::npos);
  EXPECT_NE(of(member("s.txt", "", 'S') + kEnd).find("--sparse"), std::string::npos);
  EXPECT_NE(of(good + member("a.TXT", "2") + kEnd).find("two members 'txt'"), std::string::npos);
  EXPECT_NE(of("no tar at all" + std::string(1000, 'x')).find("no tar file"), std::string::npos);
  EXPECT_NE(of(good + kEnd + good + kEnd).find("something follows the end"), std::string::npos);
  EXPECT_NE(of(good).find("truncated: the file ends without"), std::string::npos);
  EXPECT_NE(of(good + std::string(200, 'x')).find("within the header"), std::string::npos);
  EXPECT_EQ(of(good + kEnd), "");
  const std::string padding_cut = member("a.txt", std::string(600, 'y')).substr(0, 1200);
  EXPECT_NE(of(padding_cut).find("truncated: the file ends without"), std::string::npos);
  std::string huge = good;  // a size of 96 bits
  std::memset(huge.data() + 124, 0x7f, 12);
  huge[124] = '\x80';
  mend(huge.data());
  EXPECT_NE(of(huge + kEnd), "");
  put("cut.tar", member("a.txt", std::string(5000, 'y')).substr(0, 2000));
  EXPECT_NE(message("cut.tar").find("'a.txt' has 5,000 bytes, and the file ends after 1,488 of them"),
            std::string::npos);
  std::string lying = tar_headers_of("a.txt", std::int64_t{1} << 50);  // no memory is taken for it
  put("lying.tar", lying + padded("x") + kEnd);
  EXPECT_NE(message("lying.tar").find("at most 67,108,864"), std::string::npos);
  put("empty.tar", "");
  EXPECT_NE(message("empty.tar").find("the file is empty"), std::string::npos);
}

TEST_F(WebDataset, EveryFlippedByteOfAHeaderIsFound) {
  const std::string good = member("a.txt", "good") + member("b.txt", "more");
  int silent = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i % 1024 >= 512) continue;  // a member's bytes and their padding have no checksum
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    put("bad.tar", bad + kEnd);
    silent += message("bad.tar").empty() ? 1 : 0;
  }
  EXPECT_LE(silent, 4);  // what ends the two checksums' own digits: NUL and space
}

TEST_F(WebDataset, BadSamplesAreSkippedAndCounted) {
  put("a.tar", member("a.txt", "1") + member("l.txt", "", '2') + member("b.txt", "2") + member("b.txt", "3") +
                   member("c.txt", "4") + kEnd);
  const auto reader = open("a.tar", {.index = false});
  BadRecordTally tally;
  std::vector<std::string> kept;
  for (DataRecord record; next_good(*reader, record, {OnBadRecord::skip, 10}, tally).value();)
    kept.emplace_back(reader->field(record, "txt").value());
  EXPECT_EQ(kept, (std::vector<std::string>{"1", "4"}));
  EXPECT_EQ(tally.skipped, 2);
}

// Half of a sample is none: what follows a refused member is passed over with it.
TEST_F(WebDataset, TheRestOfARefusedSampleIsNoSample) {
  const std::string large(5000, 'x');
  const auto kept = [&](const std::string& bytes) {
    put("a.tar", bytes + kEnd);
    const auto reader = open("a.tar", {.index = false, .limits = {Bytes(4000)}});
    BadRecordTally tally;
    std::vector<std::string> keys;
    for (DataRecord record; next_good(*reader, record, {OnBadRecord::skip, 10}, tally).value();)
      keys.emplace_back(reader->field(record, "__key__").value());
    return fmt::format("{} and {} refused", fmt::join(keys, ","), tally.skipped);
  };
  const std::string b = member("b.txt", "2");
  EXPECT_EQ(kept(member("a.jpg", large) + member("a.txt", "1") + b), "b and 1 refused");
  EXPECT_EQ(kept(member("a.cls", "1") + member("a.jpg", large) + member("a.txt", "1") + b), "b and 1 refused");
  EXPECT_EQ(kept(member("a.jpg", "", '2') + member("a.txt", "1") + b), "b and 1 refused");
  EXPECT_EQ(kept(member("a.jpg", "", '2') + member("a.txt", "", '2') + b), "b and 1 refused");
  EXPECT_EQ(kept(member("a.jpg", "", '2') + member("a.txt", "", '2') + member("c.txt", "", '2') + b),
            "b and 2 refused");
  EXPECT_EQ(kept(member("a.cls", "1") + member("a.jpg", "", '2') + member("a.txt", "", '2') + b), "b and 1 refused");
  EXPECT_EQ(kept(member("a.jpg", large) + member("a.txt", "1")), " and 1 refused");
  EXPECT_EQ(kept(member("a.jpg", large) + b + member("a.txt", "1")), "b,a and 1 refused");  // another of that name
}

TEST_F(WebDataset, ABombIsRefused) {
  const auto file = create_compressed(*store_, "bomb.tar.zst", Compression::zstd).value();
  file->append(tar_headers_of("big", std::int64_t{200} << 20)).value();  // no dot: it is passed over
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 200; ++i) file->append(zeros).value();
  file->append(kEnd).value();
  file->finish().value();
  EXPECT_NE(message("bomb.tar.zst").find("more than 200 times"), std::string::npos);
}

TEST_F(WebDataset, TheWriterRefusesWhatWouldNotComeBack) {
  const auto writer = create_webdataset(*store_, "w.tar").value();
  const auto refused = [&](const Fields& fields) {
    std::vector<RecordField> views;
    for (const auto& [name, bytes] : fields) views.push_back({name, bytes});
    return !writer->add_fields(views).ok();
  };
  EXPECT_TRUE(refused({{"__key__", "a.b"}, {"txt", ""}}));
  EXPECT_TRUE(refused({{"__key__", "../a"}, {"txt", ""}}));
  EXPECT_TRUE(refused({{"__key__", "a"}, {"TXT", ""}}));
  EXPECT_TRUE(refused({{"__key__", "a"}}));
  EXPECT_TRUE(refused({{"txt", "1"}, {"txt", "2"}}));
  EXPECT_FALSE(refused({{"txt", "1"}}));
  EXPECT_FALSE(store_->exists("w.tar").value());
}

}  // namespace
}  // namespace systole
