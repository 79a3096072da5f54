// `where`, `dedupe` and paths into records, of every format that has fields.

#include "execute/data/formats/parquet/testing/made_up_rows.h"
#include "execute/data/testing/text_reading.h"

namespace systole {
namespace {

class TextFilters : public ReadsText {};
using Texts = std::vector<std::string>;

TEST_F(TextFilters, PathsFiltersAndRepeats) {
  put("chat.jsonl",
      "{\"lang\": \"en\", \"n\": 1, \"say\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}\n"
      "{\"lang\": \"de\", \"n\": 2, \"say\": [{\"text\": \"c\"}]}\n\n"
      "{\"lang\": \"en\", \"n\": 3, \"say\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}\n");
  put("table.csv", "n,txt,meta\n1,a,\"{\"\"k\"\": 5}\"\n2,b,{}\n30,a,null\n");
  const auto with = [](std::string field, std::string where, bool dedupe = false) {
    TextOptions options;
    options.field = std::move(field);
    options.where = std::move(where);
    options.dedupe = dedupe;
    return options;
  };
  EXPECT_EQ(texts(read({"chat.jsonl"}, with("say[*].text", ""))), (Texts{"a\nb", "c", "a\nb"}));
  const Reading some = read({"chat.jsonl"}, with("say[0].text", "lang == \"en\" and n > 1"));
  EXPECT_EQ(texts(some), (Texts{"a"}));
  EXPECT_EQ(some.stats.filtered, 2);
  const Reading once = read({"chat.jsonl", "table.csv"}, with("lang", "n == 3 or n < 3", true));
  ASSERT_TRUE(once.error);  // the table has no such column
  EXPECT_EQ(once.documents.size(), 2u);
  EXPECT_EQ(once.stats.repeated, 1);
  EXPECT_EQ(texts(read({"table.csv"}, with("txt", "n >= 2", true))), (Texts{"b", "a"}));  // as numbers
  EXPECT_EQ(texts(read({"table.csv"}, with("txt", "meta.k == 5"))), (Texts{"a"}));
  const Reading bad = read({"chat.jsonl"}, with("lang", "lang > 3"));
  EXPECT_EQ(to_string(*bad.error), "in/chat.jsonl:1: error: where: 'lang' is 'en', and it is compared with a number");
  EXPECT_EQ(read({"chat.jsonl"}, with("say.text", "")).error->message, "the record has nothing at 'say.text'");
}

// Rows that a filter's comparisons pass over count as those that it reads and leaves out.
TEST_F(TextFilters, FiltersOfParquetCompareTheColumnsOwnValues) {
  {
    using namespace parquet;
    Column flag = column_of("flag", Physical::boolean);
    flag.nullable = true;
    WriteOptions options;
    options.group_bytes = 4'000;
    const std::unique_ptr<WritableFile> file = store_->create("x.parquet").value();
    Writer writer = Writer::create(*file,
                                   {column_of("id", Physical::int64), column_of("day", Physical::int32, Meaning::date),
                                    flag, column_of("text", Physical::bytes, Meaning::text)},
                                   options)
                        .value();
    for (std::int64_t i = 0; i < 1'000; ++i) {
      const std::string text = fmt::format("t{}", i);
      const Value values[] = {Value::of((std::int64_t{1} << 53) + i), Value::of(i), Value::of(i % 2),
                              Value::of(std::string_view(text))};
      Cell row[4];
      for (int c = 0; c < 4; ++c) row[c] = {c == 2 && i % 3 == 0, {&values[c], 1}};
      writer.add(row).value();
    }
    writer.finish().value();
  }
  const auto with = [](std::string where) {
    TextOptions options;
    options.where = std::move(where);
    return options;
  };
  const Reading one = read({"x.parquet"}, with("id == 9007199254740993"));  // 2^53 + 1: no double
  EXPECT_EQ(texts(one), (Texts{"t1"}));
  EXPECT_EQ(one.stats.filtered, 999);
  const Reading some = read({"x.parquet"}, with("id > 9007199254740992 and day < \"1970-01-08\" and flag"));
  EXPECT_EQ(texts(some), (Texts{"t1", "t5"})) << to_string(some.error.value_or(Error()));
  EXPECT_EQ(some.stats.filtered, 998);
  EXPECT_EQ(texts(read({"x.parquet"}, with("flag == null and day == \"1970-01-04\""))), (Texts{"t3"}));
  const Reading none = read({"x.parquet"}, with("id < 5"));
  EXPECT_EQ(none.documents.size(), 0u);
  EXPECT_EQ(none.stats.filtered, 1'000);
  EXPECT_NE(to_string(*read({"x.parquet"}, with("text > 5")).error).find("is 't0', and it is compared"),
            std::string::npos);
}

}  // namespace
}  // namespace systole
