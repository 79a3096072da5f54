// YAML by yaml-cpp's event parser. This file adds the checks that yaml-cpp lacks: duplicate keys, several documents,
// unknown tags, keys that are not scalars, and exponential aliases (each alias is a copy; the total weight is bounded).

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "ground/base/tree_builder.h"
#include "ground/base/utf8.h"
#include "ground/base/yaml_unclosed.h"

namespace systole {
namespace {

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::string_view file, const ParseLimits& limits)
      : text_(text), file_(file), tree_(file, limits.depth), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (tree_.wants_key()) { refuse(mark, "a key is empty or null"); }
    add(Node(NodeKind::null, "", place(mark)), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Node::Place at = place(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) { refuse(mark, "an alias stands inside of what it names"); }
    pay(found->second.weight, at);
    if (tree_.depth() + found->second.depth > limits_.depth) {
      fail(error(ErrorKind::invalid, "nested deeper than {} levels", limits_.depth).at(tree_.where(at.line, at.col)));
    }
    if (tree_.wants_key()) return key(found->second.node, at);
    add(found->second.node, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (std::optional<Error> open = unclosed_quote(text_, file_, mark)) fail(*std::move(open));
    if (tree_.wants_key() && value == "<<" && (tag == "?" || tag.empty())) {  // quoted, it is ordinary text
      const Node::Place at = place(mark);
      fail(error(ErrorKind::invalid, "merge keys ('<<') are not read")
               .at(tree_.where(at.line, at.col))
               .hinted("write the keys out, or name a whole value with '&name' and repeat it with '*name'"));
    }
    add(Node(kind_of(mark, tag, value), as_utf8(value), place(mark)), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::sequence, "seq", mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::map, "map", mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  TreeBuilder& tree() { return tree_; }
  bool key_is_container() const { return key_is_container_; }  // the document was refused for that

 private:
  // yaml-cpp returns the escapes \N and \_ (U+0085 and U+00A0) as Latin-1 bytes. The document is UTF-8, so its texts
  // can contain no other invalid bytes.
  static std::string as_utf8(std::string text) {
    for (auto bad = find_invalid_utf8(text); bad; bad = find_invalid_utf8(text)) text.insert(*bad, 1, '\xc2');
    return text;
  }

  struct Anchored {
    Node node;
    std::int64_t weight;
    int depth;
  };

  Node::Place place(const YAML::Mark& mark) const { return tree_.place(mark.line + 1, mark.column + 1); }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string message) const {
    fail(Error{ErrorKind::invalid, std::move(message), tree_.where(mark.line + 1, mark.column + 1), {}, {}});
  }

  // yaml-cpp reports the tag "?" for a plain scalar, "!" for a quoted one, else the written tag.
  NodeKind kind_of(const YAML::Mark& mark, const std::string& tag, const std::string& value) const {
    if (tag == "!") return NodeKind::string;
    const NodeKind plain = kind_of_plain(value);
    if (tag == "?" || tag.empty()) return plain;
    if (!tag.starts_with(kCoreTag)) refuse(mark, fmt::format("tag '{}' is not known", tag));
    const std::string_view name = std::string_view(tag).substr(kCoreTag.size());
    if (name == "str") return NodeKind::string;
    const bool fits = (name == "null" && plain == NodeKind::null) || (name == "bool" && plain == NodeKind::boolean) ||
                      ((name == "int" || name == "float") && plain == NodeKind::number);
    if (!fits) refuse(mark, fmt::format("'{}' is not of the type '!!{}'", value.substr(0, 40), name));
    return plain;
  }

  void open(NodeKind kind, std::string_view core, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    key_is_container_ = tree_.wants_key();
    if (key_is_container_) refuse(mark, "a key must be plain text, not a list or a map");
    const bool known = tag.empty() || tag == "?" || tag == "!" || tag == fmt::format("{}{}", kCoreTag, core);
    if (!known) refuse(mark, fmt::format("tag '{}' is not known", tag));
    tree_.open(kind, place(mark)).value();
    waiting_.push_back(anchor);
  }

  void close() {
    const YAML::anchor_t anchor = waiting_.back();
    waiting_.pop_back();
    add(tree_.close(), anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_.insert_or_assign(anchor, weigh(node));
    if (tree_.wants_key()) return key(node, node.place());
    tree_.add(std::move(node));
  }

  void key(const Node& node, const Node::Place& at) {
    const Where where = tree_.where(at.line, at.col);
    if (!node.is_scalar()) fail(error(ErrorKind::invalid, "a key must be plain text, not a list or a map").at(where));
    tree_.key(node.text(), at).value();
  }

  // Copies are charged before they are made: an anchor's own copy here, an alias's in OnAlias.
  Anchored weigh(const Node& node) {
    const auto [weight, depth] = measure(node);
    pay(weight, node.place());
    return {node, weight, depth};
  }

  void pay(std::int64_t weight, const Node::Place& at) {
    weight_ += weight;
    if (weight_ <= limits_.alias_weight) return;
    fail(error(ErrorKind::invalid, "anchors and aliases expand too far")
             .at(tree_.where(at.line, at.col))
             .hinted("write the values out"));
  }

  static std::pair<std::int64_t, int> measure(const Node& node) {
    auto weight = static_cast<std::int64_t>(1 + node.text().size());
    int depth = 0;
    const auto count = [&](const Node& child) {
      const auto [below, levels] = measure(child);
      weight += below;
      depth = std::max(depth, levels);
    };
    for (const Node& item : node.items()) count(item);
    for (const Node::Entry& entry : node.entries()) {
      weight += static_cast<std::int64_t>(entry.key.size());
      count(entry.value);
    }
    return {weight, node.is_scalar() ? 0 : depth + 1};
  }

  std::string_view text_, file_;
  TreeBuilder tree_;
  ParseLimits limits_;
  bool key_is_container_ = false;
  std::vector<YAML::anchor_t> waiting_;  // anchors of the open containers
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::int64_t weight_ = 0;
};

// Accepts the end after the document; otherwise an error says what follows.
class NothingMore : public YAML::EventHandler {
 public:
  NothingMore(std::string_view text, std::string_view file) : text_(text), file_(file) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    const bool second =
        mark.pos >= 0 && text_.substr(std::min(text_.size(), static_cast<std::size_t>(mark.pos))).starts_with("---");
    fail(error(ErrorKind::invalid, "{}",
               second ? "a second document begins here, and one is read" : "text after the document's end")
             .at({std::string(file_), mark.line + 1, mark.column + 1})
             .hinted("one document a file"));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  std::string_view text_, file_;
};

// The first line up to `last` with a tab in its indentation. YAML forbids it, and yaml-cpp reports it at another place.
std::optional<Where> find_tab(std::string_view text, std::string_view file, int last) {
  int line = 1;
  for (std::size_t at = 0; at < text.size() && line <= last; ++line) {
    const std::size_t content = text.find_first_not_of(' ', at);
    if (content != std::string_view::npos && text[content] == '\t') {
      return Where{std::string(file), line, static_cast<int>(content - at) + 1};
    }
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return std::nullopt;
}

Error syntax_error(const YAML::Exception& thrown, std::string_view text, std::string_view file, int depth) {
  const int line = thrown.mark.is_null() ? 0 : thrown.mark.line + 1;
  if (std::optional<Where> tab = find_tab(text, file, line + 1)) {
    return error(ErrorKind::invalid, "a tab in the indentation").at(std::move(*tab)).hinted("indent with spaces");
  }
  if (std::optional<Error> open = find_unclosed(text, file, &thrown, depth)) return *std::move(open);
  return error(ErrorKind::invalid, "not valid YAML: {}", thrown.msg)
      .at({std::string(file), line, thrown.mark.column + 1})
      .hinted("check the indentation, and quote text that contains ': ' or ' #' or begins with one of *&!|>%@`[]{}");
}

}  // namespace

Result<Node> parse_yaml(std::string_view text, std::string_view file, const ParseLimits& limits) {
  TRY(check_text(text, file, std::min(limits.bytes, kMostYaml)));
  std::istringstream stream{std::string(text)};
  Builder builder(text, file, limits);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Node(NodeKind::null, "", builder.tree().place(1, 1));
    NothingMore nothing(text, file);
    parser.HandleNextDocument(nothing);
    CHECK(builder.tree().root().has_value(), "a document without a value in '{}'", file);
    return builder.tree().take_root();
  } catch (const Failure& failure) {
    if (builder.key_is_container())
      if (std::optional<Error> open = find_unclosed(text, file, nullptr, limits.depth)) return *std::move(open);
    return failure.error();
  } catch (const YAML::Exception& thrown) { return syntax_error(thrown, text, file, limits.depth); }
}

}  // namespace systole
