#pragma once
// Building blocks of codecs (codec.cc, codec_layout.cc).

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "describe/spec/codec.h"
#include "ground/base/nearest.h"

namespace systole {

// A codec whose `read` returns the field's value.
template <typename T>
Codec codec(std::string type, Field<T> at, std::function<Result<T>(const Node&)> read,
            std::function<Node(const T&)> write) {
  Codec c;
  c.type = std::move(type);
  c.read = [at, read](const Node& node, Workload& w) -> Status {
    at(w) = TRY(read(node));
    return Done{};
  };
  c.write = [at, write](Workload& w) { return write(at(w)); };
  return c;
}

// The same for a field that may be unset.
template <typename T>
Codec optional_codec(std::string type, Field<std::optional<T>> at, std::function<Result<T>(const Node&)> read,
                     std::function<Node(const T&)> write) {
  return codec<std::optional<T>>(
      std::move(type), at,
      [read](const Node& node) -> Result<std::optional<T>> { return std::optional<T>(TRY(read(node))); },
      [write](const std::optional<T>& value) { return value ? write(*value) : Node(); });
}

template <typename T, typename Read>
Result<std::vector<T>> read_list(const Node& node, Read read) {
  std::vector<T> values;
  if (!node.is_sequence()) return std::vector<T>{TRY(read(node))};
  for (const Node& item : node.items()) values.push_back(TRY(read(item)));
  return values;
}

template <typename T>
Node list_node(const std::vector<T>& values) {
  Node node = Node::sequence();
  for (const T& value : values) node.push(value);
  return node;
}

inline Result<std::string> read_text(const Node& node) {
  if (!node.is_scalar() || node.is_null()) return node.wrong("text");
  return node.text();
}

// Of a node that is neither one of `words` nor anything else that its key takes: with a hint if it is nearly such a word.
// There are few, so that half of the letters are enough: "aotu".
inline Error nearly(const Node& node, Error wrong, const std::vector<std::string>& words) {
  if (node.kind() != NodeKind::string) return wrong;
  const std::string& text = node.text();
  if (std::optional<std::string> meant = meant_hint(text, words)) return std::move(wrong).hinted(*std::move(meant));
  for (const std::string& word : words) {
    const auto longer = static_cast<int>(std::max(text.size(), word.size()));
    if (2 * edit_distance(text, word) <= longer)
      return std::move(wrong).hinted(fmt::format("did you mean '{}'?", word));
  }
  return wrong;
}

// True for a string node equal to `word`; false for a number or bool that is spelled alike.
inline bool is(const Node& node, std::string_view word) {
  return node.kind() == NodeKind::string && node.text() == word;
}

// An integer in the range, optionally with a suffix (codec.h). Errors: invalid, at its place.
Result<std::int64_t> read_count(const Node& node, std::int64_t lowest, std::int64_t highest);

}  // namespace systole
