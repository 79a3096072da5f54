// Wrong inputs, and the program's exact messages: golden/wrong_inputs/*.txt.
//
//   @ job.yaml                     a file in the folder of each case of this page; its text follows
//   systole: 1
//
//   === a misspelt key             a case, named by the mistake
//   $ sed s/batch/bacth/ job.yaml > wrong.yaml; systole check wrong.yaml
//   wrong.yaml:6:3: error: ...     stdout and stderr together
//   exit 2
//
// Each case runs in its own folder. A wrong input must end with 1, 2 or 3, say what is wrong and what to do; a page may
// waive the latter with `no hint:` and a reason after the case's name. SYSTOLE_WRITE_GOLDEN=1 writes the actual output
// into the pages, for a review line by line.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name, command, said;  // `said` ends with the exit line
};

struct Page {
  fs::path path;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<Case> cases;
};

Page read_page(const fs::path& path) {
  Page page{path, {}, {}};
  std::ifstream lines(path);
  std::string* text = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("@ ")) {
      text = &page.files.emplace_back(line.substr(2), "").second;
    } else if (line.starts_with("=== ")) {
      page.cases.push_back({line.substr(4), "", ""});
      text = nullptr;
    } else if (line.starts_with("$ ") && !page.cases.empty() && page.cases.back().command.empty()) {
      page.cases.back().command = line.substr(2);
      text = &page.cases.back().said;
    } else if (text != nullptr) {
      *text += line + "\n";
    }
  }
  for (Case& wrong : page.cases)  // an empty line separates cases
    while (wrong.said.ends_with("\n\n")) wrong.said.pop_back();
  for (auto& [name, content] : page.files)
    while (content.ends_with("\n\n")) content.pop_back();
  return page;
}

std::string written(const Page& page) {
  std::string text;
  for (const auto& [name, content] : page.files) text += "@ " + name + "\n" + content + "\n";
  for (const Case& wrong : page.cases) text += "=== " + wrong.name + "\n$ " + wrong.command + "\n" + wrong.said + "\n";
  text.pop_back();
  return text;
}

std::vector<fs::path> page_paths() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(SYSTOLE_SOURCE_DIR "/src/operate/cli/golden/wrong_inputs"))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

std::string said_to(const Page& page, const Case& wrong) {
  const SystoleRunner systole;
  for (const auto& [name, content] : page.files) systole.write(name, content);
  const std::string line = "systole() { \"$SYSTOLE\" \"$@\"; }; " + wrong.command;
  const Captured got = systole.shell("{ " + line + "\n} 2>&1");
  std::string said = got.out + got.err;
  const std::string folder = fs::canonical(systole.folder()).string();
  for (std::size_t at; (at = said.find(folder)) != std::string::npos;) said.replace(at, folder.size(), "FOLDER");
  if (!said.empty() && !said.ends_with('\n')) said += '\n';
  return said +
         (got.exit.signal != 0 ? "signal " + std::to_string(got.exit.signal)
                               : "exit " + std::to_string(got.exit.code)) +
         "\n";
}

class WrongInputs : public testing::TestWithParam<fs::path> {};

TEST_P(WrongInputs, are_told_so) {
  Page page = read_page(GetParam());
  ASSERT_FALSE(page.cases.empty());
  for (Case& wrong : page.cases) {
    SCOPED_TRACE(GetParam().filename().string() + ": " + wrong.name);
    ASSERT_FALSE(wrong.command.empty());
    const std::string said = said_to(page, wrong);
    EXPECT_TRUE(said.ends_with("exit 1\n") || said.ends_with("exit 2\n") || said.ends_with("exit 3\n")) << said;
    EXPECT_NE(said.find("error: "), std::string::npos) << said;
    const bool may_lack_one = wrong.name.find("no hint:") != std::string::npos;
    EXPECT_TRUE(may_lack_one || said.find("hint: ") != std::string::npos) << said;
    if (std::getenv("SYSTOLE_WRITE_GOLDEN") != nullptr) wrong.said = said;
    EXPECT_EQ(said, wrong.said);
  }
  if (std::getenv("SYSTOLE_WRITE_GOLDEN") != nullptr) std::ofstream(GetParam()) << written(page);
}

INSTANTIATE_TEST_SUITE_P(Pages, WrongInputs, testing::ValuesIn(page_paths()),
                         [](const auto& page) { return page.param.stem().string(); });

// Two hundred different cases, over all commands.
TEST(WrongInputsList, is_two_hundred_long) {
  std::set<std::string> commands;
  for (const fs::path& path : page_paths())
    for (const Case& wrong : read_page(path).cases)
      EXPECT_TRUE(commands.insert(wrong.command).second) << path << ": " << wrong.command << " stands there twice";
  EXPECT_GE(commands.size(), 200u);
}

}  // namespace
}  // namespace systole::cli
