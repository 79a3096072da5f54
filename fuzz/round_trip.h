#pragma once
// What must hold of every document and every error, for the fuzz targets. CHECK throws, which libFuzzer reports.

#include "ground/base/document.h"
#include "ground/base/quantity.h"
#include "ground/base/utf8.h"

namespace systole {

inline void check_error(const Error& error, std::string_view file) {
  CHECK(error.kind == ErrorKind::invalid, "{}", to_string(error));
  CHECK(error.where.file == file && error.where.line >= 0, "{}", to_string(error));
  CHECK(!error.message.empty(), "an error without words");
}

// Every reader of every value answers.
inline void read_everything(const Node& node) {
  CHECK(node.where().line >= 1 && node.where().col >= 1, "a value without a place: {}", node.describe());
  (void)node.as_int().ok();
  (void)node.as_double().ok();
  (void)node.as_bool().ok();
  (void)node.as_string().ok();
  (void)as_bytes(node).ok();
  (void)as_seconds(node).ok();
  (void)as_count(node).ok();
  for (const Node& item : node.items()) read_everything(item);
  for (const Node::Entry& entry : node.entries()) {
    CHECK(node.find(entry.key) == &entry.value, "key '{}' twice", entry.key);
    read_everything(entry.value);
  }
}

// Numbers that JSON spells otherwise, or not at all, come back changed once and the same from then on.
inline void check_json(const Node& node) {
  const std::string text = to_json(node);
  const Node again = parse_json(text, "again.json").value();
  CHECK(to_json(again) == text, "{} became {}", text, to_json(again));
  CHECK(parse_json(to_json(node, 2), "again.json").value() == again, "indentation changed {}", text);
}

// YAML keeps every text and number as it was written, but for control characters that it may only escape.
inline void check_yaml(const Node& node) {
  const std::string text = to_yaml(node);
  const Result<Node> again = parse_yaml(text, "again.yaml", {.depth = 200});
  CHECK(again.ok(), "{}\n{}", text, to_string(again.error()));
  CHECK(*again == node, "{}", text);
}

}  // namespace systole
