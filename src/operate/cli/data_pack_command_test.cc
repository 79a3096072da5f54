// `systole data pack`, and training on what it makes: the same documents as of the text, bad records named or skipped.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ground/base/units.h"
#include "operate/cli/testing/data_job.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataPack : public testing::Test {
 protected:
  void SetUp() override { systole_.write("text.txt", data_text()); }
  std::string read(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(systole_.folder() / file, std::ios::binary).rdbuf();
    return text.str();
  }
  Captured build(const std::string& files, const std::string& more = {}) const {
    return build_data(systole_, files, more);
  }
  // "train  284  3,970": documents and tokens of a split.
  static std::string counts(const std::string& shown) {
    std::istringstream row(shown.substr(shown.find("\ntrain ")));
    std::string split, documents, tokens;
    row >> split >> documents >> tokens;
    return documents + " " + tokens;
  }
  SystoleRunner systole_;
};

TEST_F(DataPack, packed_documents_are_those_of_the_text) {
  const Captured text = build("text.txt");
  ASSERT_EQ(text.exit.code, 0) << text.err;
  for (const std::string out : {"a.tfrecord", "a.array_record", "b.tfrecord.gz"}) {
    std::vector<std::string> pack{"data", "pack", out, "text.txt"};
    if (out == "b.tfrecord.gz") pack.insert(pack.end(), {"--compression", "gzip"});
    const Captured packed = systole_.run(pack);
    ASSERT_EQ(packed.exit.code, 0) << packed.err;
    EXPECT_TRUE(has(packed.out, out + ": 300 records of 1 file, ")) << packed.out;
    const Captured built = build(out);
    EXPECT_EQ(built.exit.code, 0) << built.err;
    EXPECT_EQ(counts(built.out), counts(text.out)) << out;
  }
  systole_.write("broken_off/.systole-unfinished", "");
  systole_.write("broken_off/shard.00007.mds", "half");
  const Captured shards = systole_.run({"data", "pack", "broken_off", "text.txt", "--to", "mds"});
  EXPECT_EQ(shards.exit.code, 0) << shards.err;
  const std::size_t bytes = read("broken_off/index.json").size() + read("broken_off/shard.00000.mds").size();
  EXPECT_TRUE(has(shards.out, fmt::format("records of 1 file, {} for ", to_string(Bytes(static_cast<int>(bytes))))))
      << shards.out;
  EXPECT_EQ(counts(build("broken_off/index.json", ", format: mds").out), counts(text.out));
  const Captured mds = systole_.run({"data", "pack", "broken_off", "text.txt", "--to", "mds"});
  EXPECT_TRUE(has(mds.err, "there is an MDS dataset already\n  hint: name another folder")) << mds.err;
  systole_.write("theirs/shard.00000.mds", "mine");
  const Captured theirs = systole_.run({"data", "pack", "theirs", "text.txt", "--to", "mds"});
  EXPECT_TRUE(has(theirs.err, "the folder is not empty: it has 'shard.00000.mds'")) << theirs.err;
  EXPECT_EQ(read("theirs/shard.00000.mds"), "mine");
  const Captured again = systole_.run({"data", "pack", "a.tfrecord", "text.txt"});
  EXPECT_EQ(again.exit.code, 1);
  EXPECT_TRUE(has(again.err, "the file is there already")) << again.err;
  ASSERT_EQ(systole_.run({"data", "pack", "whole.array_record", "a.tfrecord", "--plain"}).exit.code, 0);
  const Captured built = build("whole.array_record", ", field: .");
  EXPECT_EQ(built.exit.code, 0) << built.err;
  EXPECT_EQ(counts(built.out), counts(text.out));
}

TEST_F(DataPack, bad_records_are_named_or_skipped) {
  ASSERT_EQ(systole_.run({"data", "pack", "a.tfrecord", "text.txt"}).exit.code, 0);
  std::string bytes = read("a.tfrecord");
  bytes[bytes.find("alpha 919 of") + 2] ^= 1;  // record 1
  systole_.write("a.tfrecord", bytes);
  const Captured refused = build("a.tfrecord");
  EXPECT_EQ(refused.exit.code, 1) << refused.err;
  EXPECT_TRUE(has(refused.err, "a.tfrecord: error: record 1, byte ")) << refused.err;
  EXPECT_TRUE(has(refused.err, "the checksum of its data does not match\n  hint: ")) << refused.err;
  const Captured skipped = build("a.tfrecord", ", on_bad_record: skip");
  EXPECT_EQ(skipped.exit.code, 0) << skipped.err;
  EXPECT_TRUE(has(skipped.out, "1 bad record skipped\n")) << skipped.out;
  const Captured field = build("a.tfrecord", ", field: words, on_bad_record: skip, bad_records: 5");
  EXPECT_TRUE(has(field.err,
                  "more than 5 bad records; the first: record 0, byte 0: the Example has no feature 'words'; "
                  "it has text"))
      << field.err;
}

TEST_F(DataPack, loose_files_and_wrong_options) {
  systole_.write("x.bin", std::string("\0\1\2", 3));
  systole_.write("y.bin", "why");
  ASSERT_EQ(systole_.run({"data", "pack", "files", "*.bin", "--each", "file", "--to", "tfrecord"}).exit.code, 0);
  const std::string bytes = read("files");
  EXPECT_TRUE(has(bytes, std::string("\0\1\2", 3)) && has(bytes, "x.bin") && has(bytes, "why") && has(bytes, "data"));
  const Captured unnamed = systole_.run({"data", "pack", "out", "text.txt"});
  EXPECT_EQ(unnamed.exit.code, 2);
  EXPECT_TRUE(
      has(unnamed.err, "hint: a name that ends in .tfrecord, .array_record, .tar, .csv or .parquet, or --to mds"))
      << unnamed.err;
  const Captured zip = systole_.run({"data", "pack", "o.tfrecord", "text.txt", "--compression", "zstd"});
  EXPECT_EQ(zip.exit.code, 2);
  EXPECT_TRUE(has(zip.err, "hint: --compression none | gzip | zlib")) << zip.err;
}

}  // namespace
}  // namespace systole::cli
