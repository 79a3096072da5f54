// Blocks print as `terraform fmt` does, and an independent reader parses them back.
#include "operate/targets/gke/hcl.h"

#include <gtest/gtest.h>

#include "ground/process/capture.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/gke/testing/hcl_reader.h"

namespace systole {
namespace {

std::vector<HclBlock> sample() {
  HclBlock block{"resource", {"google_x", "a"}};
  block.set("name", "n").set("count_of_it", 3).set("on", true);
  block.set("id", HclValue::reference("google_y.b.id"), "where it is");
  block.set("pool", HclValue::joined("var.project", ".svc.id.goog")).set("list", HclValue::list({"a", 1}));
  block.set("labels", HclValue::map({{"team", "vision"}, {"a-b", "c"}}));
  block.set("after", "x");
  block.add("inner", {{"value", 1}});
  block.add("empty");
  return {block, {"variable", {"project"}, {{"default", "p"}}, {}, "two\nlines"}};
}

TEST(Hcl, prints_as_fmt_does) {
  EXPECT_EQ(to_hcl(sample()), R"(resource "google_x" "a" {
  name        = "n"
  count_of_it = 3
  on          = true
  # where it is
  id   = google_y.b.id
  pool = "${var.project}.svc.id.goog"
  list = ["a", 1]
  labels = {
    team  = "vision"
    "a-b" = "c"
  }
  after = "x"

  inner {
    value = 1
  }

  empty {}
}

# two
# lines
variable "project" {
  default = "p"
}
)");
}

TEST(Hcl, comes_back_as_it_was) {
  const std::vector<ReadBlock> read = HclReader::read(to_hcl(sample()));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].labels, (std::vector<std::string>{"google_x", "a"}));
  EXPECT_EQ(read[0].attributes["count_of_it"], 3);
  EXPECT_EQ(read[0].attributes["id"]["refers"], "google_y.b.id");
  EXPECT_EQ(read[0].attributes["pool"]["template"], (nlohmann::json{"", "var.project", ".svc.id.goog"}));
  EXPECT_EQ(read[0].attributes["labels"]["a-b"], "c");
  ASSERT_EQ(read[0].blocks.size(), 2U);
  EXPECT_EQ(read[0].blocks[0].attributes["value"], 1);
}

// Any text stays text: it is not evaluated, and does not end its string.
TEST(Hcl, no_text_becomes_anything_else) {
  std::vector<std::string> texts = hostile_texts();
  for (const char* more : {"${file(\"x\")}", "$${x}", "$$${x}", "%{if true}", "%%{x}", "\"}\nresource \"a\" \"b\" {",
                           "\x7f\x01", "$", "%", "${", "a${b}c%{d}"})
    texts.emplace_back(more);
  texts.emplace_back("a\0b", 3);
  for (const std::string& text : texts) {
    HclBlock block{"resource", {"t", text}};
    block.set("value", text).set("list", HclValue::list({text, text})).set("map", HclValue::map({{"k" + text, text}}));
    block.set("mix", HclValue::joined("var.x", text, text));
    block.add("inner", {{"value", text, text}});
    block.comment = text;
    const std::vector<ReadBlock> read = HclReader::read(to_hcl({block}));
    ASSERT_EQ(read.size(), 1U) << text;
    EXPECT_EQ(read[0].labels[1], text);
    EXPECT_EQ(read[0].attributes["value"], text);
    EXPECT_EQ(read[0].attributes["list"], (nlohmann::json{text, text}));
    EXPECT_EQ(read[0].attributes["map"]["k" + text], text);
    EXPECT_EQ(read[0].attributes["mix"]["template"], (nlohmann::json{text, "var.x", text}));
    EXPECT_EQ(read[0].attributes.size(), 4U);
    ASSERT_EQ(read[0].blocks.size(), 1U);
    EXPECT_EQ(read[0].blocks[0].attributes["value"], text);
  }
}

TEST(Hcl, refers_to_names_alone) {
  for (const char* path : {"", "a.", ".a", "a b", "a.b[0]", "file(\"x\")", "a.${b}", "A"})
    EXPECT_THROW(HclValue::reference(path), Failure) << path;
}

TEST(Hcl, is_as_terraform_formats_it) {
  Command fmt;
  fmt.argv = {"terraform", "fmt", "-check", "-diff", "-"};
  fmt.env = {{"CHECKPOINT_DISABLE", "1"}};
  const bool there = find_program("terraform").ok();
  if (!there) GTEST_SKIP() << "terraform is not on this machine";
  CaptureOptions options;
  options.input = to_hcl(sample());
  const Captured said = run_captured(fmt, options).value();
  EXPECT_EQ(said.exit.code, 0) << said.out << said.err;
}

}  // namespace
}  // namespace systole
