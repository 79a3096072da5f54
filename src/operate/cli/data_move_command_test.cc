// `systole data push`, `stage`, `sync`, `ls`, `cat` and `verify` between folders and the twins of Cloud Storage and S3.

#include <gtest/gtest.h>
#include <signal.h>

#include "ground/base/testing/files.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataMove : public testing::Test {
 protected:
  Captured run(const std::string& words) {
    return systole_.shell(
        fmt::format("echo $$ > pid; HOME=\"$PWD\" STORAGE_EMULATOR_HOST={} AWS_ENDPOINT_URL={} AWS_ACCESS_KEY_ID={} "
                    "AWS_SECRET_ACCESS_KEY='{}' exec \"$SYSTOLE\" data {}",
                    gcs_.url(), s3_.url(), S3Twin::id(), S3Twin::secret(), words));
  }
  std::string text(const std::string& name) const { return text_of(systole_.folder() / name); }
  void kill_it() const { ::kill(std::atoi(text("pid").c_str()), SIGKILL); }

  GcsTwin gcs_;
  S3Twin s3_;
  SystoleRunner systole_;
};

TEST_F(DataMove, a_folder_goes_to_gs_on_to_s3_and_back) {
  systole_.write("texts/a.txt", "alpha");
  systole_.write("texts/deep/b.txt", "beta\n");
  const Captured dry = run("push texts gs://bucket/texts --dry-run");
  EXPECT_EQ(dry.exit.code, 0) << dry.err;
  EXPECT_TRUE(has(dry.out, "/texts/a.txt to gs://bucket/texts/a.txt  5 B")) << dry.out;
  EXPECT_TRUE(has(dry.err, "2 objects, 10 B to send\nabout 0 reads and 2 writes of buckets: under $0.01")) << dry.err;
  EXPECT_TRUE(gcs_.objects().empty()) << "nothing is sent";

  EXPECT_EQ(run("push texts gs://bucket/texts").exit.code, 0);
  EXPECT_EQ(gcs_.objects().at("texts/deep/b.txt"), "beta\n");
  const Captured copied = run("sync gs://bucket/texts s3://twin/copy");
  EXPECT_EQ(copied.exit.code, 0) << copied.err;
  EXPECT_TRUE(has(copied.err, "of buckets: price unknown")) << "a server of S3 that is not AWS's: " << copied.err;
  EXPECT_TRUE(has(copied.err, "10 B leave Cloud Storage: under $0.01 to the internet ($0.12 a GiB, ")) << copied.err;
  const Captured staged = run("stage s3://twin/copy here --json");
  ASSERT_EQ(staged.exit.code, 0) << staged.err;
  EXPECT_TRUE(has(staged.out, "\"objects_sent\": 2")) << staged.out;
  EXPECT_TRUE(has(staged.out, "\"requests_usd\": null")) << staged.out;
  EXPECT_TRUE(has(staged.out, "\"egress_to_internet_usd\": null")) << staged.out;
  EXPECT_TRUE(has(staged.err, "10 B leave a bucket: price unknown; usually none")) << staged.err;
  EXPECT_EQ(text("here/deep/b.txt"), "beta\n");
  EXPECT_TRUE(has(run("stage s3://twin/copy here").out, "0 objects, 0 B sent"));

  const Captured one = run("ls gs://bucket/texts");
  EXPECT_EQ(one.out, "                  deep/\n               5  a.txt\n") << one.err;
  EXPECT_TRUE(has(run("ls 'gs://bucket/texts/*/b.txt'").out, "5  deep/b.txt"));
  EXPECT_EQ(run("ls gs://bucket/other").exit.code, 2);

  const Captured well = run("verify here");
  EXPECT_EQ(well.exit.code, 0) << well.out << well.err;
  EXPECT_TRUE(has(well.out, "OK, 2 objects: 10 B read")) << well.out;
  systole_.write("here/a.txt", "alphx");
  const Captured damaged = run("verify here");
  EXPECT_EQ(damaged.exit.code, 1);
  EXPECT_TRUE(has(damaged.out, "here/a.txt': the bytes that came have the CRC32C")) << damaged.out;
  EXPECT_TRUE(has(damaged.err, "next: systole data stage s3://twin/copy here sends those again")) << damaged.err;
  EXPECT_TRUE(has(run("stage s3://twin/copy here").out, "1 object, 5 B sent"));
  EXPECT_EQ(run("verify here").exit.code, 0);
  EXPECT_EQ(run("verify texts").exit.code, 2) << "it has no manifest";
}

TEST_F(DataMove, killed_and_run_again_it_ends_the_same) {
  const std::string big(std::size_t{40} << 20, 'b');
  gcs_.store("x/big", big);
  for (int i = 0; i < 20; ++i) gcs_.store(fmt::format("x/{:02}", i), std::string(1000 + i, 'a'));
  // Into a folder: at several requests; then into a bucket.
  for (const std::int64_t n : {4, 12, 30}) {
    gcs_.before(gcs_.count() + n, [this] { kill_it(); });
    const Captured cut = run("stage gs://bucket/x here");
    EXPECT_EQ(cut.exit.signal, SIGKILL) << n << cut.out << cut.err;
    EXPECT_FALSE(has(text("here/systole-manifest.json"), "manifest")) << "whole or absent";
  }
  const Captured whole = run("stage gs://bucket/x here");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  EXPECT_TRUE(text("here/big") == big);
  EXPECT_TRUE(has(run("verify here").out, "OK, 21 objects"));
  for (const auto& file : std::filesystem::directory_iterator(systole_.folder() / "here"))
    EXPECT_FALSE(has(file.path().string(), ".part")) << file.path();

  gcs_.before(gcs_.count() + 9, [this] { kill_it(); });
  EXPECT_EQ(run("sync here gs://bucket/y").exit.signal, SIGKILL);
  EXPECT_EQ(run("sync here gs://bucket/y").exit.code, 0);
  EXPECT_TRUE(gcs_.objects().at("y/big") == big);
  EXPECT_EQ(gcs_.objects().size(), 42U) << "no temporary object is left, and no manifest is a copy";
}

TEST_F(DataMove, interrupted_it_says_how_far_it_came_and_what_goes_on) {
  const std::string big(std::size_t{40} << 20, 'b');
  gcs_.store("x/big", big);
  gcs_.before(gcs_.count() + 6, [this] { ::kill(std::atoi(text("pid").c_str()), SIGINT); });
  const Captured cut = run("stage gs://bucket/x here");
  EXPECT_EQ(cut.exit.code, 130) << cut.out << cut.err;
  EXPECT_TRUE(has(cut.err, "error: stopped with 0 of 1 object sent, ")) << cut.err;
  EXPECT_TRUE(has(cut.err, "hint: the same command goes on")) << cut.err;
  EXPECT_EQ(run("stage gs://bucket/x here").exit.code, 0);
  EXPECT_TRUE(text("here/big") == big);
}

TEST_F(DataMove, sync_removes_only_below_and_never_for_nothing) {
  systole_.write("from/a", "1");
  for (const char* name : {"x/a", "x/b", "xb"}) gcs_.store(name, "2");
  EXPECT_TRUE(has(run("sync from gs://bucket/x --delete --dry-run").out, "remove gs://bucket/x/b\n"));
  EXPECT_EQ(gcs_.objects().size(), 3U);
  EXPECT_EQ(run("sync from gs://bucket/x --delete").exit.code, 0);
  EXPECT_EQ(gcs_.objects().size(), 2U);
  EXPECT_EQ(gcs_.objects().at("xb"), "2");
  std::filesystem::create_directories(systole_.folder() / "none");
  const Captured empty = run("sync none gs://bucket/x --delete");
  EXPECT_EQ(empty.exit.code, 2);
  EXPECT_TRUE(has(empty.err, "'none' holds nothing")) << empty.err;
  EXPECT_TRUE(has(run("sync from from/deeper").err, "within each other"));
  EXPECT_TRUE(has(run("sync 'from/*' gs://bucket/x --delete").err, "is none"));
  EXPECT_EQ(gcs_.objects().size(), 2U);
}

TEST_F(DataMove, refusals_are_told_before_anything_is_sent) {
  systole_.write("from/a", "1");
  gcs_.store("x/a", "2");
  gcs_.forbids();
  const Captured denied = run("sync gs://bucket/x here");
  EXPECT_EQ(denied.exit.code, 3) << denied.err;
  EXPECT_TRUE(has(denied.err, "roles/storage.object")) << denied.err;
  gcs_.answers_html();
  const Captured html = run("push from gs://bucket/x");
  EXPECT_TRUE(has(html.err, "what answers is not Cloud Storage")) << html.err;
  EXPECT_TRUE(has(run("push from ftp://host/x").err, "there is no store for ftp://"));
  EXPECT_TRUE(has(run("push from").err, "places"));
}

TEST_F(DataMove, rows_of_an_object_are_read_without_the_rest_of_it) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += fmt::format("alpha {} of beta{}\n", i * 7919 % 1000, i % 13);
  systole_.write("text.txt", lines);
  ASSERT_EQ(systole_.run({"data", "pack", "x.parquet", "text.txt"}).exit.code, 0);
  ASSERT_EQ(run("push x.parquet gs://bucket/p").exit.code, 0);
  const Captured row = run("cat gs://bucket/p/x.parquet --head 1");
  EXPECT_EQ(row.out, "{\"text\":\"alpha 0 of beta0\"}\n") << row.err;
}

TEST_F(DataMove, a_place_is_the_same_behind_a_link) {
  systole_.write("data/sub/a", "1");
  systole_.write("data/b", "2");
  std::filesystem::create_directory_symlink("data/sub", systole_.folder() / "link");
  for (const char* words :
       {"sync link data --delete", "sync link data/sub", "push data link", "push data link/deeper"}) {
    const Captured refused = run(words);
    EXPECT_EQ(refused.exit.code, 2) << words << refused.out;
    EXPECT_TRUE(has(refused.err, "within each other") || has(refused.err, "the same place")) << words << refused.err;
  }
  EXPECT_EQ(text("data/sub/a") + text("data/b"), "12");
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "data/sub/deeper")) << "a refusal makes no folder";
  EXPECT_TRUE(has(run("sync data / --delete --dry-run").err, "within each other"));
}

TEST_F(DataMove, a_folder_may_be_named_by_its_uri) {
  systole_.write("from/a.csv", "x,y\n1,2\n");
  const std::string here = "file://" + systole_.folder().string();
  const Captured dry = run(fmt::format("push {0}/from {0}/new --dry-run", here));
  EXPECT_TRUE(has(dry.out, " to " + (systole_.folder() / "new/a.csv").string() + "  8 B")) << dry.out << dry.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "new"));
  EXPECT_TRUE(has(run(fmt::format("stage {0}/from {0}/new", here)).out, "1 object, 8 B sent"));
  const Captured cat = run(fmt::format("cat {}/new/a.csv", here));
  EXPECT_EQ(cat.out, "{\"x\":\"1\",\"y\":\"2\"}\n") << cat.err;
  EXPECT_TRUE(has(run(fmt::format("verify {}/new", here)).out, "OK, 1 object"));
}

TEST_F(DataMove, a_bucket_is_listed_as_far_as_it_is_needed) {
  for (const char* name : {"x/a", "x/deep/b"}) gcs_.store(name, "1");
  std::int64_t before = gcs_.count();
  EXPECT_TRUE(has(run("ls gs://bucket/x").err, "1 object, 1 B"));
  EXPECT_EQ(gcs_.count() - before, 3) << "is it an object, is it a folder, what is in it";
  before = gcs_.count();
  EXPECT_EQ(run("sync gs://bucket/x here --delete --dry-run").exit.code, 0);
  EXPECT_EQ(gcs_.count() - before, 3);
}

TEST_F(DataMove, what_cannot_be_a_file_is_not_left_out_silently) {
  gcs_.store("x/a", "1");
  gcs_.store("x/deep/", "");
  EXPECT_EQ(run("stage gs://bucket/x here").exit.code, 0);
  gcs_.store("x//b", "2");
  for (const char* words : {"stage gs://bucket/x here", "sync gs://bucket/x here", "push gs://bucket/x here"}) {
    const Captured refused = run(words);
    EXPECT_EQ(refused.exit.code, 2) << words << refused.out;
    EXPECT_TRUE(has(refused.err, "1 object of 'gs://bucket/x' cannot be a file, as 'gs://bucket/x//b'")) << refused.err;
    EXPECT_TRUE(has(refused.err, "name a pattern that leaves them out")) << refused.err;
  }
  EXPECT_EQ(run("stage 'gs://bucket/x/*' here").exit.code, 0);
}

}  // namespace
}  // namespace systole::cli
