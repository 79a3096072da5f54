// Every constraint label that an op's source can raise has a call that raises it, and its message says so.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "describe/graph/ops/cases/list.h"

namespace systole {
namespace {

std::set<std::string> labels_in_sources() {
  std::set<std::string> labels;
  const std::regex label("\"([a-z_]+_c[0-9]+)\"");
  for (const auto& entry : std::filesystem::directory_iterator(SYSTOLE_SOURCE_DIR "/src/describe/graph/ops")) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() != ".cc" || file.ends_with("_test.cc") || file == "repeat.cc" || file == "fusion.cc")
      continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator at(source.begin(), source.end(), label), end; at != end; ++at) labels.insert((*at)[1]);
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
    EXPECT_TRUE(raised.count(label)) << label << " is never raised: add a bad case in ops/cases";
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
