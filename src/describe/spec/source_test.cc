// Errors found after reading a workload get their place in the document.
#include "describe/spec/source.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

constexpr const char* kText =
    "systole: 1\nname: x\nmodel: { family: gpt, layers: 1, width: 8, heads: 2, context: 8 }\ndata:\n"
    "  train: { files: [a.txt, b.txt] }\n  tokenizer: { vocabulary: 300 }\n"
    "train: { batch: 1, steps: 1, optimizer: { rate: 1 } }\n";

WorkloadSource source_of(const char* text, const WorkloadOptions& options = {}) {
  WorkloadSource source;
  EXPECT_TRUE(read_workload(text, "job.yaml", options, source).ok());
  return source;
}

TEST(WorkloadSource, an_item_of_a_list_has_its_own_place_and_line) {
  const Error placed =
      source_of(kText).placed(error(ErrorKind::not_found, "no file 'b.txt'").hinted("h"), "data.train.files", 1);
  EXPECT_EQ(to_string(placed),
            "job.yaml:5:27: error: no file 'b.txt'\n  5 |   train: { files: [a.txt, b.txt] }\n"
            "    |                           ^^^^^\n  hint: h");
}

TEST(WorkloadSource, an_error_may_name_its_key) {
  const Error placed = source_of(kText).placed(key_error(ErrorKind::unsupported, "model.width", "too much"));
  EXPECT_EQ(placed.key, "model.width");
  EXPECT_EQ(to_string(placed),
            "job.yaml:3:41: error: model.width: too much\n"
            "  3 | model: { family: gpt, layers: 1, width: 8, heads: 2, context: 8 }\n"
            "    |                                         ^");
}

TEST(WorkloadSource, a_default_is_placed_at_the_document_and_a_setting_at_itself) {
  EXPECT_EQ(to_string(source_of(kText).placed(error(ErrorKind::invalid, "x"), "data.folder").where), "job.yaml");
  const WorkloadSource set = source_of(kText, {"", {"model.width=4"}});
  EXPECT_EQ(to_string(set.placed(error(ErrorKind::invalid, "x"), "model.width").where), "--set model.width=4");
}

TEST(WorkloadSource, an_error_with_a_place_keeps_it_and_no_document_gives_none) {
  const Error there = error(ErrorKind::invalid, "x").at({"a.txt", 7, 1});
  EXPECT_EQ(to_string(source_of(kText).placed(there, "model.width").where), "a.txt:7:1");
  EXPECT_EQ(to_string(WorkloadSource().placed(error(ErrorKind::invalid, "x"), "model.width").where), "");
}

}  // namespace
}  // namespace systole
