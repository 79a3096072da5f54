#pragma once
// Builds a Node from parser events, for YAML and JSON. Holds the open containers; refuses duplicate keys and excessive
// depth. Internal to the parsers; others call parse_yaml and parse_json.

#include <optional>
#include <unordered_map>

#include "ground/base/document.h"

namespace systole {

class TreeBuilder {
 public:
  TreeBuilder(std::string_view file, int depth) : file_(std::make_shared<const std::string>(file)), depth_(depth) {}

  Node::Place place(int line, int col) const { return {file_, line, col}; }
  Where where(int line, int col) const { return {*file_, line, col}; }

  Status open(NodeKind kind, Node::Place place);   // errors: invalid, too deep
  Node close();                                    // the innermost container, not yet added to its parent
  void add(Node value);                            // REQUIRES: in a map, its key was added before
  Status key(std::string key, Node::Place place);  // errors: invalid, duplicate
  bool wants_key() const;                          // in a map, at the start of an entry
  int depth() const { return static_cast<int>(open_.size()); }
  const std::optional<Node>& root() const { return root_; }
  Node take_root() { return std::move(*root_); }

 private:
  struct Open {
    NodeKind kind;
    Node::Place place;
    std::vector<Node> items;
    std::vector<Node::Entry> entries;
    std::unordered_map<std::string, std::pair<int, int>> seen;  // key: line and column
    bool has_key = false;
  };

  std::shared_ptr<const std::string> file_;
  int depth_;
  std::vector<Open> open_;
  std::optional<Node> root_;
};

// The line and column of a byte offset. REQUIRES: offset <= text.size().
Where place_of(std::string_view text, std::string_view file, std::size_t offset);

// Checks that the text is UTF-8 without control characters other than tab, newline and carriage return, and no longer
// than `most`. Errors: invalid, at its place.
Status check_text(std::string_view text, std::string_view file, std::int64_t most);

}  // namespace systole
