// TFRecord and ArrayRecord beside other hands: `array_record`, which tools/oracles/install puts into the build folder,
// and TFRecord by its layout (tools/oracles/records_oracle.py). Both ways; uncompressed files are equal byte for byte.

#include <gtest/gtest.h>

#include <filesystem>

#include "execute/data/formats/array_record.h"
#include "execute/data/formats/testing/some_records.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/testing/oracle.h"

namespace systole {
namespace {

const Oracle oracle("records");

class FormatsOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT(oracle);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    store_ = open_posix_store(folder_).value();
    std::string items;
    for (const std::string& record : records_) {
      const auto size = static_cast<std::uint32_t>(record.size());
      items.append(reinterpret_cast<const char*>(&size), sizeof size);
      items += record;
    }
    write_whole(*store_, "items.bin", items).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void expect_all(std::unique_ptr<RecordReader> reader, const std::string& name) {
    const ReadThrough read = read_through(*reader);
    EXPECT_EQ(read.errors, std::vector<std::string>()) << name;
    EXPECT_TRUE(read.records == records_) << name;
  }
  RecordFile file(const std::string& name) { return {store_.get(), name, name}; }

  const std::string folder_ = testing::TempDir() + "/formats_oracle";
  const std::vector<std::string> records_ = some_records(600);
  std::unique_ptr<Store> store_;
};

TEST_F(FormatsOracleTest, FilesOfEachAreReadByTheOther) {
  const Captured wrote = oracle.run_script("records_oracle.py", {"write", folder_});
  ASSERT_TRUE(wrote.exit.ok()) << wrote.err;
  const std::pair<const char*, ArrayRecordOptions> kinds[] = {{"plain-1", {1, 0, false}},
                                                              {"plain-3", {3, 0, false}},
                                                              {"plain-3-padded", {3, 0, true}},
                                                              {"zstd-1", {1, 3, false}},
                                                              {"zstd-256", {256, 3, false}}};
  for (const auto& [name, options] : kinds) {
    const std::string ours = fmt::format("ours-{}.array_record", name),
                      theirs = fmt::format("theirs-{}.array_record", name);
    expect_all(open_array_record(file(theirs)).value(), theirs);
    write_records(*create_array_record(*store_, ours, options).value(), records_).value();
    if (options.zstd_level == 0) {
      EXPECT_TRUE(read_text(*store_, ours).value() == read_text(*store_, theirs).value()) << name;
    }
  }
  for (const char* name : {"theirs.tfrecord", "theirs.tfrecord.gz", "theirs-zlib.tfrecord"})
    expect_all(open_tfrecord(file(name)).value(), name);
  const std::pair<const char*, TfrecordCompression> compressions[] = {
      {"ours.tfrecord", TfrecordCompression::none},
      {"ours-gzip.tfrecord", TfrecordCompression::gzip},
      {"ours-zlib.tfrecord", TfrecordCompression::zlib}};
  for (const auto& [name, compression] : compressions)
    write_records(*create_tfrecord(*store_, name, compression).value(), records_).value();
  const Captured checked = oracle.run_script("records_oracle.py", {"check", folder_});
  EXPECT_TRUE(checked.exit.ok()) << checked.err;

  for (const char* name : {"transposed", "brotli", "snappy"}) {
    auto reader = open_array_record(file(fmt::format("refused-{}.array_record", name)));
    DataRecord record;
    const Error refused = reader.ok() ? (*reader)->next(record).error() : reader.error();
    EXPECT_EQ(refused.kind, ErrorKind::unsupported) << to_string(refused);
  }
}

}  // namespace
}  // namespace systole
