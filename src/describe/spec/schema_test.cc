// The schema itself, and the texts printed from it.
#include "describe/spec/schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "describe/spec/excerpt.h"
#include "describe/spec/testing/small_workload.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

TEST(Name, must_be_one_that_a_folder_can_have) {
  const auto said = [](const std::string& name) {
    return errors_of(replaced(kSmall, "name: small", "name: \"" + name + "\""));
  };
  for (const char* good : {"a", "GPT-2 124M!", "gr\u00f6\u00dfe", "a.b_c-1"}) EXPECT_EQ(said(good), "no error") << good;
  EXPECT_EQ(said(std::string(200, 'n')), "no error");
  for (const auto& [bad, part] : {std::pair<std::string, std::string>{"", "it is empty"},
                                  {"a/b", "'a/b' cannot name a run's folder: it has a '/'"},
                                  {"a/b", "hint: name: a-b"},
                                  {"a@b", "'a@b' cannot name a run's folder: it has an '@', and NAME@STEP names a "},
                                  {"a@b", "hint: name: a-b"},
                                  {"/abs", "hint: name: abs"},
                                  {".", "it begins with '.' or '-'"},
                                  {"..", "it begins with '.' or '-'"},
                                  {".hidden", "hint: name: hidden"},
                                  {"-rf", "hint: name: rf"},
                                  {" a", "begins or ends with a space"},
                                  {"a ", "begins or ends with a space"},
                                  {"a\\nb", "signs that are no text"},
                                  {std::string(300, 'n'), "it is too long"}})
    EXPECT_NE(said(bad).find(part), std::string::npos) << bad << ": " << said(bad);
}

TEST(Schema, each_key_is_there_once_under_a_section_with_a_sentence_and_one_source) {
  std::set<std::string> seen;
  for (const Key& key : schema().keys) {
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    EXPECT_TRUE(key.doc.ends_with('.')) << key.path;
    EXPECT_EQ(schema().section(key.path), nullptr) << key.path;
    const std::size_t dot = key.path.rfind('.');
    EXPECT_NE(schema().section(dot == key.path.npos ? "" : key.path.substr(0, dot)), nullptr) << key.path;
    EXPECT_LE((key.default_yaml.empty() ? 0 : 1) + (key.derive ? 1 : 0) + (key.optional ? 1 : 0), 1) << key.path;
    EXPECT_EQ(key.derived.empty(), !key.derive) << key.path;
  }
  for (const Section& section : schema().sections)
    EXPECT_FALSE(schema().names_under(section.path).empty()) << section.path;
}

TEST(Schema, a_decider_stands_before_what_depends_on_it) {
  std::set<std::string> seen;
  for (const Key& key : schema().keys) {
    EXPECT_TRUE(key.when.key.empty() || seen.contains(key.when.key)) << key.path;
    seen.insert(key.path);
  }
}

TEST(Schema, every_default_reads) {
  for (const Key& key : schema().keys) {
    if (key.default_yaml.empty()) continue;
    Workload w;
    const Status read = key.codec.read(parse_yaml(key.default_yaml, "default").value(), w);
    EXPECT_TRUE(read.ok()) << key.path;
    Workload again;
    EXPECT_TRUE(key.codec.read(parse_yaml(to_yaml(key.codec.write(w)), "printed").value(), again).ok()) << key.path;
    EXPECT_EQ(key.codec.write(w), key.codec.write(again)) << key.path;
  }
}

TEST(Explain, a_key_a_section_a_last_part_and_all) {
  const std::string rate = explain_key("train.optimizer.rate").value();
  EXPECT_NE(rate.find("number, above 0"), std::string::npos) << rate;
  EXPECT_NE(rate.find("default: required"), std::string::npos) << rate;
  EXPECT_NE(explain_key("momentum").value().find("only with train.optimizer.kind: sgd"), std::string::npos);
  EXPECT_NE(explain_key("steps").value().find("excludes train.tokens, train.time"), std::string::npos);
  EXPECT_NE(explain_key("precision").value().find("a type alone"), std::string::npos);
  EXPECT_NE(explain_key("train.precision.parameter").value().find("f32 | f64"), std::string::npos);
  EXPECT_NE(explain_key("train").value().find("optimizer"), std::string::npos);
  EXPECT_NE(explain_key("keys").value().find("data.train.files"), std::string::npos);
  const auto none = explain_key("train.optimizer.rte");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().hint.find("'train.optimizer.rate'"), std::string::npos) << none.error().hint;
  EXPECT_NE(explain_key("momentun").error().hint.find("'momentum'"), std::string::npos);
  for (const char* nothing : {"6", "x", "%"})
    EXPECT_EQ(explain_key(nothing).error().hint, "systole explain keys lists all") << nothing;
}

TEST(Explain, the_reference_page_is_not_stale) {
  const std::string path = std::string(SYSTOLE_SOURCE_DIR) + "/docs/reference/keys.md";
  if (std::getenv("SYSTOLE_UPDATE") != nullptr) std::ofstream(path) << keys_reference();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), keys_reference()) << "SYSTOLE_UPDATE=1 and this test write it anew";
}

TEST(Excerpt, shows_the_line_and_carets) {
  EXPECT_EQ(excerpt("a: 1\nbb: \"x y\" # c\n", {"f", 2, 5}), "  2 | bb: \"x y\" # c\n    |     ^^^^^");
  EXPECT_EQ(excerpt("a: two words, b: 1", {"f", 1, 4}), "  1 | a: two words, b: 1\n    |    ^^^^^^^^^");
  EXPECT_EQ(excerpt("ä: ö", {"f", 1, 5}), "  1 | ä: ö\n    |    ^");
  EXPECT_EQ(excerpt("a", {"f", 2, 1}), "");
  EXPECT_EQ(excerpt("a", {"f", 1, 9}), "");
  EXPECT_EQ(excerpt("a", {"f", 0, 0}), "");
  EXPECT_EQ(excerpt("a: \x80\x80", {"f", 1, 4}), "") << "not UTF-8";
  EXPECT_EQ(excerpt(std::string("a: \x1b\0b", 6), {"f", 1, 4}), "  1 | a:   b\n    |    ^^^") << "control characters";
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "\xc3\xa4";
  for (int col = 1; col <= 400; ++col) excerpt(accents, {"f", 1, col});  // clipped at any column
  const std::string line = std::string(200, 'x') + " key " + std::string(200, 'y');
  EXPECT_LT(excerpt(line, {"f", 1, 202}).size(), 260U);
  EXPECT_NE(excerpt(line, {"f", 1, 202}).find("key"), std::string::npos);
}

}  // namespace
}  // namespace systole
