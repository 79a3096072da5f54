#include "execute/data/formats/csv_records.h"

#include <gtest/gtest.h>

#include "execute/data/formats/bad_records.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

using Row = std::vector<std::string>;

class CsvRecords : public testing::Test {
 protected:
  Row row(RecordReader& reader, const DataRecord& record) {
    Row found;
    for (const std::string& name : reader.field_names()) found.emplace_back(reader.field(record, name).value());
    return found;
  }
  std::vector<Row> rows(const std::string& path) {
    const auto reader = open_csv({store_.get(), path, path}).value();
    std::vector<Row> found{reader->field_names()};
    for (DataRecord record; reader->next(record).value();) found.push_back(row(*reader, record));
    return found;
  }
  std::vector<Row> of(std::string_view text, const std::string& path = "a.csv") {
    write_whole(*store_, path, text).value();
    return rows(path);
  }
  std::string refused(std::string_view text) {
    write_whole(*store_, "bad.csv", text).value();
    const auto reader = open_csv({store_.get(), "bad.csv", "bad.csv"});
    if (!reader.ok()) return reader.error().message;
    while (true) {
      DataRecord record;
      const Result<bool> more = (*reader)->next(record);
      if (!more.ok()) return more.error().message;
      if (!*more) return "";
    }
  }
  std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(CsvRecords, QuotesLineEndsAndMarks) {
  EXPECT_EQ(of("\xEF\xBB\xBFid,text\r\n1,\"a,\"\"b\"\"\r\nc\"\r\n\r\n2,\n3,last"),
            (std::vector<Row>{{"id", "text"}, {"1", "a,\"b\"\r\nc"}, {"2", ""}, {"3", "last"}}));
  EXPECT_EQ(of("a\tb\n1,5\t\"2\"\n", "a.tsv"), (std::vector<Row>{{"a", "b"}, {"1,5", "2"}}));
  EXPECT_EQ(of("a,b\n"), (std::vector<Row>{{"a", "b"}}));
}

TEST_F(CsvRecords, ReadsBackWhatItWroteAcrossManyWindows) {
  PhiloxStream random(5);
  std::vector<Row> made{{"id", "text", "note"}};
  for (int i = 0; i < 3000; ++i) {
    std::string text(random.below(i % 100 == 0 ? 400'000 : 300), ' ');
    for (char& c : text) c = "ab,\"\n\r \xC3"[random.below(8)];
    made.push_back({std::to_string(i), text, ""});
  }
  for (const char* path : {"a.csv", "a.csv.gz", "a.tsv.zst"}) {
    const auto writer = create_csv(*store_, path).value();
    for (std::size_t i = 1; i < made.size(); ++i) {
      const RecordField fields[] = {{"id", made[i][0]}, {"text", made[i][1]}, {"note", made[i][2]}};
      writer->add_fields(fields).value();
    }
    writer->finish().value();
    EXPECT_TRUE(rows(path) == made) << path;
  }
}

TEST_F(CsvRecords, ErrorsNameTheRowAndTheByte) {
  EXPECT_EQ(refused("a,b\n1,2\n3\n"), "record 1, byte 8: the row has 1 field, and the header names 2");
  EXPECT_EQ(refused("a,b\n1,2,3\n"), "record 0, byte 4: the row has 3 fields, and the header names 2");
  EXPECT_EQ(refused("a,b\n1,\"x\n\n"), "record 0, byte 4: a quote in this row is never closed");
  EXPECT_EQ(refused("a,b\n1,x\"y\n"), "record 0, byte 4: a quote amid a field");
  EXPECT_EQ(refused("a,b\n1,\"x\"y\n"), "record 0, byte 4: text behind a closing quote");
  EXPECT_EQ(refused("a,a\n1,2\n"), "the first row names the columns, and 'a' is there twice");
  EXPECT_EQ(refused("a,,c\n"), "the first row names the columns, and '' is no name");
}

// A file whose lines end in CR alone would be a header without rows.
TEST_F(CsvRecords, ACarriageReturnOutsideQuotesIsNoText) {
  const std::string what = "a carriage return (CR) amid a field without quotes";
  EXPECT_EQ(refused("a,b\r1,2\r3,4\r"), "record 0, byte 0: " + what);
  EXPECT_EQ(refused("a,b\n1,x\ry\n"), "record 0, byte 4: " + what);
  EXPECT_EQ(refused("a,b\n1\r,x\n"), "record 0, byte 4: " + what);
  EXPECT_EQ(refused("a,b\n1,x\r\r\n"), "record 0, byte 4: " + what);
  EXPECT_EQ(refused("a,b\r\n1,\"x\ry\"\r\n2,3\r"), "");
}

TEST_F(CsvRecords, ARowBeyondTheLimitIsRefused) {
  write_whole(*store_, "a.csv", "a,b\n1," + std::string(98, 'x') + "\n2," + std::string(99, 'x') + "\n3,4\n").value();
  const auto reader = open_csv({store_.get(), "a.csv", "a.csv"}, {Bytes(100)}).value();
  DataRecord record;
  ASSERT_TRUE(reader->next(record).value());
  EXPECT_EQ(reader->next(record).error().message,
            "record 1, byte 105: a row of 101 bytes, and the largest allowed is 100");
  ASSERT_TRUE(reader->goes_on());
  ASSERT_TRUE(reader->next(record).value());
  EXPECT_EQ(row(*reader, record), (Row{"3", "4"}));
}

TEST_F(CsvRecords, BadRowsAreSkippedAndCounted) {
  write_whole(*store_, "a.csv", std::string_view("a,b\n1,2\n3\n4,5,6\n7,\"8\"x\n9,10\n")).value();
  const auto reader = open_csv({store_.get(), "a.csv", "a.csv"}).value();
  BadRecordTally tally;
  std::vector<Row> kept;
  for (DataRecord record; next_good(*reader, record, {OnBadRecord::skip, 3}, tally).value();)
    kept.push_back(row(*reader, record));
  EXPECT_EQ(kept, (std::vector<Row>{{"1", "2"}, {"9", "10"}}));
  EXPECT_EQ(tally.skipped, 3);
}

TEST_F(CsvRecords, AColumnOfJsonIsReadByPath) {
  write_whole(*store_, "a.csv", std::string_view("id,meta\n1,\"{\"\"lang\"\": [\"\"en\"\", \"\"de\"\"]}\"\n")).value();
  const auto reader = open_csv({store_.get(), "a.csv", "a.csv"}).value();
  DataRecord record;
  ASSERT_TRUE(reader->next(record).value());
  EXPECT_EQ(reader->field(record, "meta.lang[*]").value(), "en\nde");
  EXPECT_EQ(reader->field(record, "meta.text").error().message,
            "record 0, byte 8: field 'meta': the record has nothing at 'text'");
  EXPECT_EQ(reader->field(record, "text").error().message,
            "record 0, byte 8: the row has no field 'text'; it has: id, meta");
}

}  // namespace
}  // namespace systole
