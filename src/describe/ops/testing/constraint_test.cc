// Every constraint label in an op's source has a bad case, whose error message begins with the label.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "describe/ops/testing/list.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

// "<op>_c<n>".
bool is_label(const std::string& text) {
  const std::size_t at = text.rfind("_c");
  if (at == std::string::npos || at == 0 || at + 2 == text.size()) return false;
  return text.substr(0, at).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos &&
         text.find_first_not_of("0123456789", at + 2) == std::string::npos;
}

// The string literals of the ops' sources that are labels.
std::set<std::string> labels_in_sources() {
  std::set<std::string> labels;
  for (const auto& entry : std::filesystem::directory_iterator(SYSTOLE_SOURCE_DIR "/src/describe/ops")) {
    const std::string file = entry.path().filename().string();
    const bool has_own_test = file == "repeat.cc" || file == "fusion.cc";
    if (entry.path().extension() != ".cc" || file.ends_with("_test.cc") || has_own_test) continue;
    std::ifstream source(entry.path());
    for (std::string piece; std::getline(source, piece, '"');) {
      if (is_label(piece)) labels.insert(piece);
    }
  }
  return labels;
}

TEST(EveryConstraint, HasABadCase) {
  const std::set<std::string> labels = labels_in_sources();
  EXPECT_GT(labels.size(), 30u);
  std::set<std::string> raised;
  for (const BadCase& call : op_cases(DType::f32).bad) {
    raised.insert(call.label);
    EXPECT_TRUE(labels.count(call.label)) << call.label << " is in no source";
  }
  for (const std::string& label : labels)
    EXPECT_TRUE(raised.count(label)) << label << " is never raised: add a bad case in ops/testing";
}

TEST(EveryConstraint, RefusesByItsLabel) {
  for (const DType f : {DType::f64, DType::f32, DType::bf16}) {
    for (const BadCase& call : op_cases(f).bad) {
      try {
        infer_results(op_named(call.op), call.attrs, call.operands);
        ADD_FAILURE() << call.op << to_string(call.attrs) << " was taken; " << call.label << " should refuse it";
      } catch (const Failure& failure) {
        EXPECT_EQ(failure.error().kind, ErrorKind::invalid) << call.label;
        EXPECT_TRUE(failure.error().message.starts_with(call.label + ": "))
            << call.label << " expected, got: " << failure.error().message;
      }
    }
  }
}

}  // namespace
}  // namespace systole
