// Data from tar files, MDS and CSV through the command line: the same documents as of the text they were packed from,
// fields by path, filters, repeated documents, and what is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "operate/cli/testing/data_job.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataFormats : public testing::Test {
 protected:
  void SetUp() override {
    std::string chat;
    for (int i = 0; i < 300; ++i) {
      chat += fmt::format(
          "{{\"lang\": \"{}\", \"score\": {}, \"messages\": [{{\"content\": \"{}\"}}, {{\"content\": \"yes\"}}]}}\n",
          i % 3 == 0 ? "en" : "de", i / 300.0, data_line(i));
    }
    systole_.write("text.txt", data_text());
    systole_.write("chat.jsonl", chat);
    systole_.write("again.jsonl", chat);
  }
  Captured build(const std::string& files, const std::string& more = {}) const {
    return build_data(systole_, files, more);
  }
  // Documents of train and held out, or what went wrong.
  static std::string documents(const Captured& built) {
    if (built.exit.code != 0) return built.err;
    std::string counts;
    for (const char* split : {"\ntrain ", "\nheld out "}) {
      const std::size_t at = built.out.find(split);
      std::istringstream row(at == std::string::npos ? "" : built.out.substr(at + std::string_view(split).size()));
      std::string count, tokens;
      row >> count >> tokens;
      counts += count + "/" + tokens + " ";
    }
    return counts;
  }
  SystoleRunner systole_;
};

TEST_F(DataFormats, packed_documents_are_those_of_the_text) {
  const std::string text = documents(build("text.txt"));
  ASSERT_TRUE(has(text, "/")) << text;
  for (const std::string out : {"a.tar", "a.tar.zst", "a.csv.gz", "shards"}) {
    std::vector<std::string> words{"data", "pack", out, "text.txt"};
    if (out == "shards") words.insert(words.end(), {"--to", "mds", "--compression", "zstd"});
    const Captured packed = systole_.run(words);
    ASSERT_EQ(packed.exit.code, 0) << packed.err;
    EXPECT_TRUE(has(packed.out, out + ": 300 records of 1 file, ")) << packed.out;
    EXPECT_EQ(documents(build(out, has(out, ".tar") ? ", field: txt" : "")), text) << out;
  }
}

TEST_F(DataFormats, loose_files_become_samples) {
  std::filesystem::create_directories(systole_.folder() / "loose");
  for (const char* name : {"loose/1.txt", "loose/1.json", "loose/2.txt", "loose/2.json"})
    systole_.write(name, has(name, "json") ? "{\"label\": \"a\"}" : "some words to learn");
  const Captured packed = systole_.run({"data", "pack", "loose.tar", "loose/*", "--each", "file"});
  ASSERT_EQ(packed.exit.code, 0) << packed.err;
  EXPECT_TRUE(has(packed.out, "loose.tar: 2 records of 4 files, ")) << packed.out;
  const Captured wrong = build("loose.tar", ", field: text");
  EXPECT_TRUE(has(wrong.err, "the sample has no field 'text'; it has: json, txt\n  hint: field: txt")) << wrong.err;
}

TEST_F(DataFormats, paths_filters_and_repeats) {
  const Captured all = build("chat.jsonl", ", field: 'messages[*].content'");
  EXPECT_EQ(all.exit.code, 0) << all.err;
  const Captured some = build("chat.jsonl", ", field: 'messages[0].content', where: 'lang == \"de\" and score < 0.9'");
  EXPECT_EQ(some.exit.code, 0) << some.err;
  EXPECT_TRUE(has(some.out, "120 records left out by `where`\n")) << some.out;
  const Captured once = build("[chat.jsonl, again.jsonl]", ", field: 'messages[0].content', dedupe: true");
  EXPECT_TRUE(has(once.out, "300 repeated documents left out by `dedupe`\n")) << once.out << once.err;
  const Captured wrong = build("chat.jsonl", ", field: x, where: 'lang = \"en\"'");
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_TRUE(has(wrong.err, "job.yaml:4:")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "one '=' compares nothing\n")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "\n  hint: write ==\n")) << wrong.err;
  EXPECT_TRUE(has(build("text.txt", ", where: 'a == 1'").err, "`where` chooses records by their fields")) << wrong.err;
}

}  // namespace
}  // namespace systole::cli
