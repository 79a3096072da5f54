// The pages of docs/reference are up to date. commands.md freezes every command and option.

#include "operate/cli/reference_pages.h"
#include "ground/base/testing/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace systole {

void PrintTo(const ReferencePage& page, std::ostream* out) { *out << page.file; }

namespace cli {
namespace {

class ReferencePages : public testing::TestWithParam<ReferencePage> {};

TEST_P(ReferencePages, is_up_to_date) {
#ifndef SYSTOLE_HAS_CPU
  if (GetParam().file == "ops.md") GTEST_SKIP() << "the page is printed by a build with the cpu backend";
#endif
  std::ifstream file(std::string(SYSTOLE_SOURCE_DIR) + "/docs/reference/" + GetParam().file);
  std::stringstream want(GetParam().text);
  std::string there, now;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(file, there)),
               more_now = static_cast<bool>(std::getline(want, now));
    ASSERT_EQ(more, more_now) << "one page is longer, from line " << line << "; run: systole reference docs/reference";
    if (!more) break;
    ASSERT_EQ(there, now) << "line " << line << "; run: systole reference docs/reference";
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, ReferencePages, testing::ValuesIn(reference_pages()), [](const auto& page) {
  std::string name = page.param.file.substr(0, page.param.file.find('.'));
  for (char& c : name)
    if (c == '-' || c == '/') c = '_';
  return name;
});

}  // namespace
}  // namespace cli
}  // namespace systole
