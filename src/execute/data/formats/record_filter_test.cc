#include "execute/data/formats/record_filter.h"
#include "execute/data/formats/seen_texts.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

constexpr std::string_view kRecord = R"({"lang": "en", "score": 0.75, "ok": true, "none": null, "id": "17",
  "meta": {"a.b": {"n": 3}, "tags": ["x", "y"]}, "messages": [{"content": "hi"}, {"role": "u"}, {"content": "there"}]})";

Result<bool> keeps(std::string_view text, std::string_view record = kRecord) {
  const RecordFilter filter = TRY(RecordFilter::parse(text));
  return filter.keeps([&](const std::string& path) -> Result<FieldValue> {
    const FieldPath parsed = TRY(FieldPath::parse(path));
    return json_value_at(record, parsed);
  });
}
std::string error_of(std::string_view text) { return keeps(text).error().message; }

TEST(RecordFilter, Compares) {
  for (const char* yes :
       {"lang == \"en\" and score > 0.5", "not lang != \"en\"", "score >= 0.75 and score <= 0.75",
        "lang in [\"de\", \"en\"]", "meta.\"a.b\".n == 3", "meta.tags[1] == \"y\"",
        "messages[0].content contains \"h\"", "none == null", "absent == null", "absent != \"x\"", "ok", "ok == true",
        "id == 17", "id > 2 and id == \"17\"", "false or (lang == \"de\" or score < 1e0) and ok",
        "not (lang == \"de\")", "-1 < score", "\"en\" == lang"})
    EXPECT_TRUE(keeps(yes).value()) << yes;
  for (const char* no : {"lang == \"de\"", "absent > 3", "absent == \"x\"", "none", "lang in [\"de\"]", "not ok",
                         "lang == \"de\" or score > 1", "ok and score > 1", "true and false or false"})
    EXPECT_FALSE(keeps(no).value()) << no;
}

TEST(RecordFilter, ErrorsSayWhereAndWhatToWrite) {
  EXPECT_EQ(error_of("lang = \"en\""), "where: character 6 of 'lang = \"en\"': one '=' compares nothing");
  EXPECT_EQ(keeps("lang = \"en\"").error().hint, "write ==");
  EXPECT_EQ(keeps("a and b && c").error().hint, "write and");
  EXPECT_EQ(keeps("lang == 'en'").error().hint, "write \"...\"");
  EXPECT_NE(error_of("(lang == \"en\"").find("character 1 of"), std::string::npos);
  EXPECT_NE(error_of("lang == \"en").find("character 9 of"), std::string::npos);
  EXPECT_NE(error_of("lang ==").find("ends too early"), std::string::npos);
  EXPECT_NE(error_of("").find("ends too early"), std::string::npos);
  EXPECT_NE(error_of("a[x] == 1").find("a bracket holds a number or *"), std::string::npos);
  EXPECT_EQ(error_of("lang > 3"), "where: 'lang' is 'en', and it is compared with a number");
  EXPECT_EQ(error_of("score == \"x\""), "where: 'score' (a number) cannot be compared so with a text");
  EXPECT_EQ(error_of("lang"), "where: 'lang' (a text) is neither true nor false");
  EXPECT_NE(error_of(std::string(200, '(') + "ok").find("nested too deeply"), std::string::npos);
  EXPECT_EQ(RecordFilter::parse("a = 1", {"job.yaml", 4, 10}).error().where, (Where{"job.yaml", 4, 12}));
  EXPECT_EQ(RecordFilter::parse("a == 1 or b.c == a").value().fields(), (std::vector<std::string>{"a", "b.c"}));
}

TEST(FieldPath, TextsAtAPath) {
  const auto at = [](std::string_view path) { return json_text_at(kRecord, FieldPath::parse(path).value()); };
  EXPECT_EQ(at("messages[*].content").value(), "hi\nthere");
  EXPECT_EQ(at("messages[2].content").value(), "there");
  EXPECT_EQ(at("meta.tags[*]").value(), "x\ny");
  EXPECT_EQ(at("score").error().message, "'score' is a number, not a string");
  EXPECT_EQ(at("messages[9].content").error().message, "the record has nothing at 'messages[9].content'");
  for (const char* bad : {"", "a.", ".a", "a[", "a[-1]", "a[1]b", "\"a", "a..b"})
    EXPECT_FALSE(FieldPath::parse(bad).ok()) << bad;
}

TEST(SeenTexts, TellsWhatWasThere) {
  SeenTexts seen;
  EXPECT_TRUE(seen.add("a"));
  EXPECT_TRUE(seen.add("b"));
  EXPECT_FALSE(seen.add("a"));
}

}  // namespace
}  // namespace systole
