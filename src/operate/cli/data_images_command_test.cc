// Images at the command line: `data pack` keeps their bytes, `data cat` says what they are, `data probe` measures.

#include <gtest/gtest.h>

#include "execute/data/images/testing/image_files.h"
#include "ground/base/units.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataImages : public testing::Test {
 protected:
  void SetUp() override {
    jpeg_ = jpeg_of(some_picture(64, 48, 3, 1));
    systole_.write("photos/1.jpg", jpeg_);
    systole_.write("photos/1.txt", "a picture");
    systole_.write("photos/2.jpg", png_of(some_picture(40, 30, 4, 2), {.type = 6}));
    systole_.write("photos/2.txt", "another");
    shell("$SYSTOLE data pack photos.tar 'photos/*' --each file");
  }
  Captured shell(const std::string& line) const {
    Captured got = systole_.shell(line);
    EXPECT_EQ(got.exit.code, 0) << line << "\n" << got.out << got.err;
    return got;
  }
  SystoleRunner systole_;
  std::string jpeg_;
};

TEST_F(DataImages, cat_says_format_and_size_and_pack_keeps_the_bytes) {
  const Captured rows = shell("$SYSTOLE data cat photos.tar");
  const std::string size = with_commas(static_cast<std::int64_t>(jpeg_.size()));
  EXPECT_TRUE(has(rows.out, fmt::format("\"jpg\":\"JPEG 64 x 48, 3 channels, {} bytes\",\"txt\":\"a picture\"", size)))
      << rows.out;
  EXPECT_TRUE(has(rows.out, "\"jpg\":\"PNG 40 x 30, 4 channels, ")) << rows.out;
  shell("tar -xf photos.tar --to-stdout $(tar -tf photos.tar | grep 1.jpg) | cmp - photos/1.jpg");
  systole_.write("cut/1.jpg", jpeg_.substr(0, 100));
  shell("$SYSTOLE data pack cut.tar 'cut/*' --each file");
  EXPECT_TRUE(
      has(shell("$SYSTOLE data cat cut.tar").out, "\"jpg\":\"JPEG, 100 bytes: JPEG ends in its head, at byte 100\""));
}

TEST_F(DataImages, probe_measures_images_of_records) {
  const Captured told = shell("$SYSTOLE data probe photos.tar --image jpg --size 32 --seconds 0.1");
  EXPECT_TRUE(has(told.out, "photos.tar: 1 JPEG, 1 PNG; on average ")) << told.out;
  EXPECT_TRUE(has(told.out, "decode, crop, resize")) << told.out;
  systole_.write("photos/3.jpg", "fLaC");
  systole_.write("photos/3.txt", "music");
  shell("$SYSTOLE data pack more.tar 'photos/*' --each file");
  const Captured json = shell("$SYSTOLE data probe more.tar --image jpg --seconds 0.1 --json");
  EXPECT_TRUE(has(json.out, "\"refused\": 1")) << json.out;
  EXPECT_TRUE(has(json.out, "\"images_per_second\":")) << json.out;
  const Captured text = systole_.run({"data", "probe", "more.tar", "--image", "txt", "--seconds", "0.1"});
  EXPECT_NE(text.exit.code, 0);
  EXPECT_TRUE(has(text.err, "more.tar: error: none of 3 records is an image that can be decoded")) << text.err;
  EXPECT_TRUE(has(text.err, "hint: systole data cat more.tar --head 3")) << text.err;
}

TEST_F(DataImages, a_misspelt_field_and_a_missing_one_are_hinted_as_they_are_typed) {
  const auto says = [&](const std::string& words, const std::string& text) {
    const Captured told = systole_.shell("$SYSTOLE " + words);
    EXPECT_EQ(told.exit.code, 2) << words << told.out;
    EXPECT_TRUE(has(told.err, text)) << words << "\n" << told.err;
    EXPECT_FALSE(has(told.err, "iconv")) << told.err;
  };
  says("data probe photos.tar --image jgp", "has no field 'jgp'; it has: jpg, txt\n  hint: --image jpg\n");
  says("data probe photos.tar --image picture", "\n  hint: --image jpg\n");
  says(
      "data probe photos.tar",
      "error: 'photos.tar' holds images, and is no workload file\n  hint: systole data probe photos.tar --image jpg\n");
  says("data cat photos.tar --columns jgp", "hint: --columns jpg\n");
  says("data cat photos.tar --columns tx", "hint: --columns txt\n");
  says("data pack a.tfrecord photos.tar --field tx", "hint: --field txt\n");
  for (const char* command : {"check", "plan", "run", "data build", "data show"})
    says(std::string(command) + " photos.tar",
         "'photos.tar' is a file of records, not a workload file\n  hint: a workload "
         "names it: data: { train: { files: photos.tar } }\n");
  systole_.write("words/1.txt", "a");
  systole_.write("words/1.cls", "b");
  shell("$SYSTOLE data pack words.tar 'words/*' --each file");
  says("data probe words.tar", "'words.tar' is a file of records, not a workload file");
  says("data probe words.tar --image tx", "hint: --image txt\n");
}

// Every option and key that takes files of records, with each spelling of a folder.
TEST_F(DataImages, a_folder_in_the_place_of_a_file_is_named_with_what_to_type) {
  systole_.write("job.yaml",
                 "systole: 1\nname: job\nmodel: { family: gpt, layers: 1, width: 8, heads: 1, context: 8 }\n"
                 "data: { tokenizer: { vocabulary: 300 }, train: { files: text.txt } }\n"
                 "train: { batch: 1, steps: 1, optimizer: { kind: sgd, rate: 1 } }\n");
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += fmt::format("line {} of some text\n", i);
  systole_.write("text.txt", lines);
  ASSERT_EQ(systole_.shell("$SYSTOLE data build job.yaml").exit.code, 0);
  systole_.write("rows.tar/a.jsonl", "{}");
  const auto says = [&](const std::string& words, const std::string& text, const std::string& hint) {
    const Captured told = systole_.shell("$SYSTOLE " + words);
    EXPECT_EQ(told.exit.code, 2) << words << told.out;
    EXPECT_TRUE(has(told.err, text) && has(told.err, "\n  hint: " + hint)) << words << "\n" << told.err;
    EXPECT_FALSE(has(told.err, "bad path")) << told.err;
  };
  for (const std::string folder : {".", "photos", "photos/", "photos/.", "..", "/"}) {
    const std::string named = fmt::format("'{}' is a folder", folder);
    std::string below = folder == "/" || folder == "photos/" ? folder.substr(0, folder.size() - 1) : folder;
    const std::string hint = fmt::format("name its files: {}/*", below);
    says("data show job.yaml --against " + folder, named, hint);
    says("data pack out.tar --each file " + folder, named, hint + "\n");
    says("data pack out.csv " + folder, named, hint + ".");
    says(fmt::format("check job.yaml --set data.train.files={}", folder), "is a folder", hint + ".");
    says(fmt::format("check job.yaml --set data.held_out.files={}", folder), "is a folder", hint + ".");
    says("init --data " + folder, named, hint + ".");
    says("data cat " + folder, named, "name one of its files: systole data ls " + folder);
    says("data probe --image jpg " + folder, named, "name one of its files: systole data ls " + folder);
  }
  says("data show job.yaml --against rows.tar", "'rows.tar' is a folder", "name its files: rows.tar/*.jsonl\n");
  says("data cat rows.tar", "'rows.tar' is a folder", "name one of its files: systole data ls rows.tar\n");
  systole_.write("rows.parquet/a.parquet", "");
  says("data bigquery 'gs://b/*.csv' p.d.t --schema rows.parquet", "'rows.parquet' is a folder",
       "name its files: rows.parquet/*.parquet\n");
  shell("$SYSTOLE data pack mds/ photos/1.txt --to mds");
  EXPECT_TRUE(has(shell("$SYSTOLE data cat mds/shard.00000.mds").out, "a picture"));
}

}  // namespace
}  // namespace systole::cli
