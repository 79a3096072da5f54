#include "ground/base/tree_builder.h"

#include <algorithm>

#include "ground/base/units.h"
#include "ground/base/utf8.h"

namespace systole {

Where place_of(std::string_view text, std::string_view file, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return {std::string(file), line, static_cast<int>(offset - start) + 1};
}

Status check_text(std::string_view text, std::string_view file, std::int64_t most) {
  if (static_cast<std::int64_t>(text.size()) > most) {
    return error(ErrorKind::invalid, "the document has {} bytes and at most {} are read",
                 with_commas(static_cast<std::int64_t>(text.size())), with_commas(most))
        .at({std::string(file), 0, 0});
  }
  if (const std::optional<std::size_t> bad = find_invalid_utf8(text)) {
    return error(ErrorKind::invalid, "byte 0x{:02x} at offset {} is not UTF-8", static_cast<unsigned char>(text[*bad]),
                 *bad)
        .at(place_of(text, file, *bad))
        .hinted("save the file as UTF-8 (iconv -t utf-8 converts it)");
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) {
      return error(ErrorKind::invalid, "control character 0x{:02x} at offset {}: is this a text file?", byte, at)
          .at(place_of(text, file, at));
    }
  }
  return Done{};
}

Status TreeBuilder::open(NodeKind kind, Node::Place place) {
  if (depth() >= depth_) {
    return error(ErrorKind::invalid, "nested deeper than {} levels", depth_).at(where(place.line, place.col));
  }
  open_.push_back({kind, std::move(place), {}, {}, {}, false});
  return Done{};
}

Node TreeBuilder::close() {
  CHECK(!open_.empty(), "close without open");
  Open top = std::move(open_.back());
  open_.pop_back();
  Node node = top.kind == NodeKind::map ? Node::map(std::move(top.entries)) : Node::sequence(std::move(top.items));
  node.set_place(std::move(top.place));
  return node;
}

bool TreeBuilder::wants_key() const {
  return !open_.empty() && open_.back().kind == NodeKind::map && !open_.back().has_key;
}

void TreeBuilder::add(Node value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Open& top = open_.back();
  if (top.kind == NodeKind::sequence) {
    top.items.push_back(std::move(value));
    return;
  }
  CHECK(top.has_key, "a value without a key");
  top.entries.back().value = std::move(value);
  top.has_key = false;
}

Status TreeBuilder::key(std::string key, Node::Place place) {
  Open& top = open_.back();
  const auto [first, fresh] = top.seen.try_emplace(key, place.line, place.col);
  if (!fresh) {
    const Where before = where(first->second.first, first->second.second);
    return error(ErrorKind::invalid, "key '{}' is there twice, first at {}", key, to_string(before))
        .at(where(place.line, place.col))
        .hinted("remove one of them");
  }
  top.entries.push_back({std::move(key), Node(), std::move(place)});
  top.has_key = true;
  return Done{};
}

}  // namespace systole
