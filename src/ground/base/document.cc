#include "ground/base/document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "ground/base/nearest.h"

namespace systole {
namespace {

constexpr std::size_t kShown = 40;  // bytes of a scalar in a message

std::string shown(const std::string& text) { return text.size() <= kShown ? text : text.substr(0, kShown) + "..."; }

Where to_where(const Node::Place& place) { return place.file ? Where{*place.file, place.line, place.col} : Where{}; }

bool is_whole(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const char* name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::null: return "null";
    case NodeKind::boolean: return "true or false";
    case NodeKind::number: return "number";
    case NodeKind::string: return "text";
    case NodeKind::sequence: return "list";
    case NodeKind::map: return "map";
  }
  return "unknown";
}

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

Node::Node(const char* text) : Node(std::string(text)) {}
Node::Node(std::string_view text) : Node(std::string(text)) {}
Node::Node(std::string text) : Node(NodeKind::string, std::move(text)) {}
Node::Node(bool value) : Node(NodeKind::boolean, value ? "true" : "false") {}

Node::Node(double value) : Node(std::isfinite(value) ? NodeKind::number : NodeKind::string, fmt::format("{}", value)) {
  if (std::isnan(value)) text_ = "nan";
  if (text_ == "-0") text_ = "-0.0";  // as an integer it would lose its sign
}

Node::Node(NodeKind scalar, std::string text) : kind_(scalar), text_(std::move(text)) {}
Node::Node(NodeKind scalar, std::string text, Place place)
    : kind_(scalar), text_(std::move(text)), place_(std::move(place)) {}

Node Node::sequence(std::vector<Node> items) {
  Node node;
  node.kind_ = NodeKind::sequence;
  node.items_ = std::move(items);
  return node;
}

Node Node::map() { return map(std::vector<Entry>()); }
Node Node::map(std::initializer_list<Entry> entries) { return map(std::vector<Entry>(entries)); }

Node Node::map(std::vector<Entry> entries) {
  Node node;
  node.kind_ = NodeKind::map;
  node.entries_ = std::move(entries);
  return node;
}

Node& Node::set(std::string_view key, Node value) {
  if (is_null()) kind_ = NodeKind::map;
  CHECK(is_map(), "set '{}' in {}", key, describe());
  for (Entry& entry : entries_) {
    if (entry.key == key) {
      entry.value = std::move(value);
      return *this;
    }
  }
  entries_.push_back({std::string(key), std::move(value), {}});
  return *this;
}

Node& Node::push(Node item) {
  if (is_null()) kind_ = NodeKind::sequence;
  CHECK(is_sequence(), "push to {}", describe());
  items_.push_back(std::move(item));
  return *this;
}

Where Node::where() const { return to_where(place_); }
Where Node::Entry::where() const { return to_where(place); }

std::span<const Node::Entry> Node::entries() const { return entries_; }

std::vector<std::string> Node::keys() const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string Node::text_at(std::string_view key) const {
  const Node* found = find(key);
  return found != nullptr && found->is_scalar() ? found->text() : "";
}

std::string Node::describe() const {
  switch (kind_) {
    case NodeKind::null: return "nothing";
    case NodeKind::boolean: return text_;
    case NodeKind::number: return "number " + shown(text_);
    case NodeKind::string: return "text '" + shown(text_) + "'";
    case NodeKind::sequence: return "a list";
    case NodeKind::map: return "a map";
  }
  return "unknown";
}

Error Node::wrong(std::string_view expected) const {
  return error(ErrorKind::invalid, "expected {}, found {}", expected, describe())
      .at(where())
      .coded(ErrorCode::unexpected_value);
}

Result<const Node*> Node::get(std::string_view key) const {
  if (!is_map()) return wrong(fmt::format("a map with the key '{}'", key));
  if (const Node* found = find(key)) return found;
  Error absent = error(ErrorKind::not_found, "key '{}' is missing", key)
                     .at(where())
                     .coded(ErrorCode::missing_key)
                     .about(std::string(key));
  if (const auto near = nearest(key, keys(), 1); !near.empty()) {
    absent.hint = fmt::format("is '{}' meant as '{}'?", near[0], key);
  }
  return absent;
}

Result<std::int64_t> Node::as_int(std::int64_t lowest, std::int64_t highest) const {
  if (kind_ != NodeKind::number) return wrong("a whole number");
  std::string_view digits = text_;
  int base = 10;
  if (text_.starts_with("0x") || text_.starts_with("0o")) {
    base = text_[1] == 'x' ? 16 : 8;
    digits.remove_prefix(2);
  } else if (!is_whole(digits)) {
    return wrong("a whole number");
  } else if (digits[0] == '+') {
    digits.remove_prefix(1);
  }
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (status == std::errc::result_out_of_range) return wrong("a whole number of 64 bits");
  CHECK(status == std::errc() && end == digits.data() + digits.size(), "number '{}'", text_);
  if (value < lowest || value > highest) {
    const bool open = highest == std::numeric_limits<std::int64_t>::max();
    return wrong(open ? fmt::format("a whole number of at least {}", lowest)
                      : fmt::format("a whole number from {} to {}", lowest, highest));
  }
  return value;
}

Result<double> Node::as_double() const {
  if (kind_ != NodeKind::number) return wrong("a number");
  if (text_.starts_with("0x") || text_.starts_with("0o")) return static_cast<double>(TRY(as_int()));
  const std::string_view digits = std::string_view(text_).substr(text_[0] == '+' ? 1 : 0);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status == std::errc::invalid_argument) return wrong("a finite number");  // .nan, .inf
  // from_chars does not tell overflow from underflow; strtod does, and an underflow to zero is fine.
  if (status == std::errc::result_out_of_range) value = std::strtod(std::string(digits).c_str(), nullptr);
  if (!std::isfinite(value)) return wrong("a finite number");
  return value;
}

Result<bool> Node::as_bool() const {
  if (kind_ == NodeKind::boolean) return text_[0] == 't' || text_[0] == 'T';
  Error made = wrong("true or false");
  const bool old = text_ == "yes" || text_ == "on" || text_ == "no" || text_ == "off";
  if (old) made.hint = fmt::format("write {}", text_ == "yes" || text_ == "on" ? "true" : "false");
  return made;
}

Result<std::string> Node::as_string() const {
  if (kind_ == NodeKind::string) return text_;
  Error made = wrong("text");
  if (kind_ == NodeKind::number || kind_ == NodeKind::boolean)
    made.hint = fmt::format("put it in quotes: \"{}\"", text_);
  return made;
}

bool operator==(const Node& a, const Node& b) {
  if (a.kind_ != b.kind_) return false;
  if (a.is_scalar()) return a.is_null() || a.text_ == b.text_;
  const auto same = [](const Node::Entry& x, const Node::Entry& y) { return x.key == y.key && x.value == y.value; };
  return a.items_ == b.items_ &&
         std::equal(a.entries_.begin(), a.entries_.end(), b.entries_.begin(), b.entries_.end(), same);
}

}  // namespace systole
