// The facts of a text are right, and the suggested tokenizer can be trained.
#include "operate/init/text_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ground/base/files.h"

namespace systole {
namespace {

class FactsOfText : public testing::Test {
 protected:
  FactsOfText() {
    std::string name = temporary_folder() + "/systole-text-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder");
    folder_ = name;
  }
  ~FactsOfText() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

// Sentences from two hundred words, so that pieces repeat; `end` follows each.
std::string sentences(int count, const std::string& end) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("word{} goes before word{} and after number {} in a list{}", i % 101, i * 7 % 199, i, end);
  return text;
}

TEST_F(FactsOfText, are_of_paragraphs_where_lines_are_empty) {
  const TextFacts facts = facts_of_text({write("a.txt", sentences(1000, "\nand so on\n\n"))}).value();
  EXPECT_EQ(facts.document, DocumentRule::blank_line);
  EXPECT_EQ(facts.documents, 1000);
  EXPECT_TRUE(facts.whole);
  EXPECT_FALSE(facts.ill_formed);
  EXPECT_EQ(facts.held_out, 0.05);
  EXPECT_GE(facts.vocabulary, 260);
  EXPECT_GT(facts.bytes_per_token, 1);
  EXPECT_LT(facts.tokens(), facts.bytes.count());
}

TEST_F(FactsOfText, are_of_lines_where_none_is_empty) {
  const TextFacts facts = facts_of_text({write("a.txt", sentences(1000, "\n"))}).value();
  EXPECT_EQ(facts.document, DocumentRule::line);
  EXPECT_EQ(facts.documents, 1000);
}

TEST_F(FactsOfText, set_more_aside_of_few_documents) {
  const TextFacts facts =
      facts_of_text({write("a.txt", sentences(200, " ") + "\n" + sentences(200, " ") + "end\n")}).value();
  EXPECT_EQ(facts.documents, 2);
  EXPECT_GT(facts.held_out, 0);
  EXPECT_LT(facts.held_out, 1);
}

TEST_F(FactsOfText, lower_the_vocabulary_until_the_text_fills_it) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? "abab baba abba\n" : fmt::format("aa bb {}\n", i % 10);
  const TextFacts facts = facts_of_text({write("a.txt", text)}).value();
  EXPECT_LT(facts.vocabulary, 512);
}

TEST_F(FactsOfText, tell_bytes_that_are_no_utf8) {
  const TextFacts facts = facts_of_text({write("a.txt", sentences(1000, "\n") + "caf\xe9 au lait\n")}).value();
  EXPECT_TRUE(facts.ill_formed);
}

TEST_F(FactsOfText, refuse_what_nothing_can_be_trained_on) {
  const auto refused = [&](const std::string& file) { return facts_of_text({file}).error(); };
  EXPECT_EQ(refused(folder_ + "/none.txt").kind, ErrorKind::not_found);
  const Error short_text = refused(write("short.txt", "a few words\n"));
  EXPECT_EQ(short_text.kind, ErrorKind::invalid);
  EXPECT_NE(short_text.hint.find("16"), std::string::npos) << short_text.hint;
  const Error one = refused(write("one.txt", sentences(1000, " ")));
  EXPECT_NE(one.message.find("is one document"), std::string::npos) << one.message;
  const Error folder = refused(folder_);
  EXPECT_NE(folder.hint.find("/*.txt"), std::string::npos) << folder.hint;
}

}  // namespace
}  // namespace systole
