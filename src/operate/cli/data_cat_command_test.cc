// `systole data cat`, and training on a Parquet file: the same documents as of the text.

#include <gtest/gtest.h>

#include "operate/cli/testing/data_job.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataCat : public testing::Test {
 protected:
  void SetUp() override {
    systole_.write("text.txt", data_text());
    const Captured packed = systole_.run({"data", "pack", "x.parquet", "text.txt"});
    ASSERT_EQ(packed.exit.code, 0) << packed.err;
    EXPECT_TRUE(has(packed.out, "x.parquet: 300 records of 1 file, ")) << packed.out;
  }
  Captured build(const std::string& files, const std::string& more = {}) const {
    return build_data(systole_, files, more);
  }
  SystoleRunner systole_;
};

TEST_F(DataCat, rows_are_lines_of_json) {
  const Captured two = systole_.run({"data", "cat", "x.parquet", "--head", "2"});
  EXPECT_EQ(two.exit.code, 0) << two.err;
  EXPECT_EQ(two.out, "{\"text\":\"alpha 0 of beta0\"}\n{\"text\":\"alpha 919 of beta1\"}\n");
  const Captured one = systole_.run({"data", "cat", "x.parquet", "--where", "text == \"alpha 919 of beta1\""});
  EXPECT_EQ(one.out, "{\"text\":\"alpha 919 of beta1\"}\n") << one.err;
  const Captured none = systole_.run({"data", "cat", "x.parquet", "--columns", "txet"});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_TRUE(has(none.err, "x.parquet: error: the file has no column 'txet'\n  hint: did you mean 'text'?"))
      << none.err;
  const Captured text = systole_.run({"data", "cat", "text.txt"});
  EXPECT_TRUE(has(text.err, "its name does not say that it is a file of records")) << text.err;
}

TEST_F(DataCat, any_file_of_records) {
  systole_.write("x.csv", "lang,score\nen,3\nde,12\nen,12\n");
  const Captured csv = systole_.run({"data", "cat", "x.csv", "--where", "score > 5", "--where", "lang == \"en\""});
  EXPECT_EQ(csv.out, "{\"lang\":\"en\",\"score\":\"12\"}\n") << csv.err;
  ASSERT_EQ(systole_.run({"data", "pack", "x.tfrecord", "text.txt"}).exit.code, 0);
  EXPECT_EQ(systole_.run({"data", "cat", "x.tfrecord", "--head", "1", "--columns", "text"}).out,
            "{\"text\":\"alpha 0 of beta0\"}\n");
  const Captured wrong = systole_.run({"data", "cat", "x.csv", "--where", "lang > 5"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_TRUE(has(wrong.err, "x.csv: error: record 0, byte")) << wrong.err;
  const Captured half = systole_.run({"data", "cat", "x.csv", "--where", "score = 5"});
  EXPECT_TRUE(has(half.err, "one '=' compares nothing")) << half.err;
}

TEST_F(DataCat, what_pack_wrote_of_text_is_text) {
  const std::string two = "{\"text\":\"alpha 0 of beta0\"}\n{\"text\":\"alpha 919 of beta1\"}\n";
  for (const std::string file : {"x.tfrecord", "x.array_record", "x.mds"}) {
    const Captured packed = systole_.run({"data", "pack", file, "text.txt"});
    ASSERT_EQ(packed.exit.code, 0) << packed.err;
    const Captured shown = systole_.run({"data", "cat", file, "--head", "2"});
    EXPECT_EQ(shown.exit.code, 0) << shown.err;
    EXPECT_EQ(shown.out, two) << file;
  }
}

TEST_F(DataCat, documents_of_a_column_are_those_of_the_text) {
  const Captured text = build("text.txt"), parquet = build("x.parquet");
  ASSERT_EQ(parquet.exit.code, 0) << parquet.err;
  const auto counts = [](const Captured& built) {
    const std::size_t at = built.out.find("\ntrain ");
    const std::string row = built.out.substr(at, built.out.find('\n', at + 1) - at);
    return row.substr(0, row.find(',') + 4);  // documents and tokens: a column has no line breaks
  };
  EXPECT_EQ(counts(parquet), counts(text));
  const Captured other = build("x.parquet", ", field: body");
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_TRUE(has(other.err, "x.parquet: error: the file has no column 'body'")) << other.err;
}

}  // namespace
}  // namespace systole::cli
