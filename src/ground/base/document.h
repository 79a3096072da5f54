#pragma once
// A document as a tree of values with their source places, read from YAML or JSON and written as either.
//
// Scalars keep their text: a number is converted to an integer or a double only on request, so nothing is lost on the
// way. A plain YAML scalar is null, boolean or number by the core schema of YAML 1.2 (`yes` and `on` are text); a
// quoted one is always text. Maps keep their order; keys are unique. Lines and columns are 1-based; columns count
// bytes. Parsing is safe against hostile input: depth, size and the expansion of aliases are bounded.
//
// Nodes are values; const access is thread-safe. A change of the node invalidates references to its entries and items.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

enum class NodeKind { null, boolean, number, string, sequence, map };

const char* name_of(NodeKind kind);  // "null", "true or false", "number", "text", "list", "map": for messages

class Node {
 public:
  struct Entry;
  struct Place {  // a Where whose file name is shared
    std::shared_ptr<const std::string> file;
    int line = 0, col = 0;
  };

  // Building. Node::map({{"steps", 100}, {"name", "x"}, {"losses", Node::sequence({1.5, 2.5})}})
  Node();  // null
  Node(bool value);
  template <std::integral I>
  requires(!std::same_as<I, bool> && !std::same_as<I, char>) Node(I value)
      : Node(NodeKind::number, std::to_string(value)) {}
  Node(double value);  // shortest text that reads back the same; if not finite, the text "nan", "inf" or "-inf"
  Node(const char* text);
  Node(std::string_view text);
  Node(std::string text);
  Node(NodeKind scalar, std::string text);
  Node(NodeKind scalar, std::string text, Place place);
  static Node sequence(std::vector<Node> items = {});
  static Node map(std::initializer_list<Entry> entries);
  static Node map(std::vector<Entry> entries);  // REQUIRES: no key twice
  static Node map();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;
  ~Node();

  Node& set(std::string_view key, Node value);  // adds or replaces; null becomes a map. Returns *this
  Node& push(Node item);                        // null becomes a sequence. Returns *this
  void set_place(Place place) { place_ = std::move(place); }

  // Inspecting.
  NodeKind kind() const { return kind_; }
  bool is_null() const { return kind_ == NodeKind::null; }
  bool is_map() const { return kind_ == NodeKind::map; }
  bool is_sequence() const { return kind_ == NodeKind::sequence; }
  bool is_scalar() const { return kind_ < NodeKind::sequence; }
  Where where() const;
  const Place& place() const { return place_; }
  const std::string& text() const { return text_; }       // of a scalar
  std::span<const Node> items() const { return items_; }  // of a sequence, else empty
  std::span<const Entry> entries() const;                 // of a map, else empty
  std::vector<std::string> keys() const;
  const Node* find(std::string_view key) const;     // null if absent or not a map. O(entries)
  std::string text_at(std::string_view key) const;  // of that entry; "" if it is absent or no scalar
  std::string describe() const;                     // "number 12", "text 'abc'", "a map", for messages

  // Typed access; every error has the place. Errors: invalid (wrong kind, out of range), not_found (get).
  Result<const Node*> get(std::string_view key) const;  // valid as long as this node
  Result<std::int64_t> as_int(std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                              std::int64_t highest = std::numeric_limits<std::int64_t>::max()) const;
  Result<double> as_double() const;  // finite
  Result<bool> as_bool() const;
  Result<std::string> as_string() const;
  Error wrong(std::string_view expected) const;  // "expected a map, found number 12" at this place

  friend bool operator==(const Node& a, const Node& b);  // compares kinds, texts and order, not places

 private:
  NodeKind kind_ = NodeKind::null;
  std::string text_;
  std::vector<Node> items_;
  std::vector<Entry> entries_;
  Place place_;
};

struct Node::Entry {
  std::string key;
  Node value;
  Place place = {};  // of the key
  Where where() const;
};

struct ParseLimits {
  int depth = 100;                      // of nested sequences and maps
  std::int64_t bytes = 1 << 28;         // of the text; YAML accepts at most kMostYaml, whatever this says
  std::int64_t alias_weight = 100'000;  // YAML: nodes and bytes of text that all aliases together may add
};
constexpr std::int64_t kMostYaml = 1 << 22;

// `file` is the file name in error places. Reads one document; comments are skipped. An empty YAML document is null.
// Errors: invalid, at its place: syntax, duplicate keys (both places), not UTF-8, too deep, too large, several
// documents, merge keys (`<<`), tags outside the core schema, keys that are not scalars, aliases that expand too far.
Result<Node> parse_yaml(std::string_view text, std::string_view file, const ParseLimits& limits = {});
Result<Node> parse_json(std::string_view text, std::string_view file, const ParseLimits& limits = {});

// The kind of a plain scalar by YAML 1.2's core schema.
NodeKind kind_of_plain(std::string_view text);

// `indent` spaces per level; 0 is one line. Ends without a newline. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const Node& node, int indent = 0);
// Block style, two spaces per level, ends in a newline. Reads back equal (numbers in JSON's syntax and strings of
// UTF-8).
std::string to_yaml(const Node& node);

}  // namespace systole
