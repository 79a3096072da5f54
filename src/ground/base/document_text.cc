// Nodes to text: JSON and block YAML.

#include <algorithm>
#include <cctype>

#include "ground/base/document.h"
#include "ground/base/sourced_yaml.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

// The common case: nothing to escape or to replace.
bool is_clean(std::string_view raw) {
  return std::ranges::all_of(raw, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

void append_quoted(std::string& out, std::string_view raw) {
  out += '"';
  if (is_clean(raw)) {
    out.append(raw).append(1, '"');
    return;
  }
  for (const char c : replace_invalid_utf8(raw)) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string in_quotes(std::string_view raw) {
  std::string out;
  append_quoted(out, raw);
  return out;
}

bool is_count(std::string_view text) {
  return !text.empty() && text.size() <= 18 && (text[0] != '0' || text.size() == 1) &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_json_number(std::string_view text) {
  if (kind_of_plain(text) != NodeKind::number) return false;
  if (text[0] == '-') text.remove_prefix(1);
  const bool digit_first = text[0] >= '0' && text[0] <= '9';
  const bool leading_zero =
      text.size() > 1 && text[0] == '0' && ((text[1] >= '0' && text[1] <= '9') || text[1] == 'x' || text[1] == 'o');
  const std::size_t point = text.find('.');
  const bool digit_after =
      point == std::string_view::npos || (point + 1 < text.size() && text[point + 1] >= '0' && text[point + 1] <= '9');
  return digit_first && !leading_zero && digit_after;
}

// Converts YAML's other spellings of numbers (0x10, +1, .5, 1.) to JSON's. A number that is not a finite double becomes
// text.
std::string json_number(const Node& node) {
  if (is_count(node.text())) return node.text();
  if (node.text() != "-0" && is_json_number(node.text()) && node.as_double().ok()) return node.text();
  if (const Result<std::int64_t> whole = node.as_int(); whole.ok()) return std::to_string(*whole);
  if (const Result<double> real = node.as_double(); real.ok()) return Node(*real).text();
  return in_quotes(node.text());
}

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Node& node) {
    switch (node.kind()) {
      case NodeKind::null: text += "null"; return;
      case NodeKind::boolean: text += *node.as_bool() ? "true" : "false"; return;
      case NodeKind::number: text += json_number(node); return;
      case NodeKind::string: append_quoted(text, node.text()); return;
      case NodeKind::sequence: list('[', ']', node.items(), [this](const Node& item) { write(item); }); return;
      case NodeKind::map:
        list('{', '}', node.entries(), [this](const Node::Entry& entry) {
          append_quoted(text, entry.key);
          text += indent_ > 0 ? ": " : ":";
          write(entry.value);
        });
    }
  }

  std::string text;

 private:
  template <typename T, typename Each>
  void list(char first, char last, std::span<const T> items, Each each) {
    text += first;
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += ',';
      newline();
      each(items[i]);
    }
    --level_;
    if (!items.empty()) newline();
    text += last;
  }
  void newline() {
    if (indent_ > 0) text.append(1, '\n').append(static_cast<std::size_t>(level_ * indent_), ' ');
  }

  int indent_;
  int level_ = 0;
};

// Words that YAML 1.1 reads as a boolean (PyYAML, Kubernetes): "NO" as "no" and "No".
bool is_old_boolean(std::string_view text) {
  constexpr std::string_view kWords[] = {"yes", "no", "on", "off", "y", "n"};
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    return std::ranges::equal(text, word, {}, [](unsigned char c) { return std::tolower(c); });
  });
}

// Texts that YAML 1.1 reads as a number or a date: 1_000, 0b11, 0x_ff, 2026-11-23.
bool is_old_number(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const bool based = text.size() > 2 && text[0] == '0' && std::string_view("bBxXoO").find(text[1]) != text.npos;
  return text.substr(based ? 2 : 0).find_first_not_of(based ? "0123456789abcdefABCDEF_" : "0123456789_.-") == text.npos;
}

// Text that reads back as the same text without quotes, also by YAML 1.1.
bool is_plain(std::string_view text) {
  if (kind_of_plain(text) != NodeKind::string || text == "<<" || is_old_boolean(text) || is_old_number(text))
    return false;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+ ").find(c) != std::string_view::npos;
  };
  const bool letter_first =
      text[0] == '_' || text[0] == '/' || (plain(text[0]) && (static_cast<unsigned char>(text[0]) >= '0'));
  return letter_first && text.back() != ' ' && std::all_of(text.begin(), text.end(), plain);
}

std::string yaml_scalar(const Node& node) {
  switch (node.kind()) {
    case NodeKind::null: return "null";
    case NodeKind::string: return is_plain(node.text()) ? node.text() : in_quotes(node.text());
    default: return node.text();
  }
}

// Text of several lines that a literal block preserves: no line ends in a space or tab, the first does not begin with a
// space, which would be read as indentation, and at most one newline ends it.
bool is_literal(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == ' ' || text.front() == '\n' || text.front() == '\t') return false;
  if (text.ends_with("\n\n") || text.find(" \n") != text.npos || text.find("\t\n") != text.npos) return false;
  if (text.back() == ' ' || text.back() == '\t') return false;
  return std::ranges::all_of(text, [](unsigned char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; });
}

std::string literal(std::string_view text, std::size_t indent) {
  std::string out = text.back() == '\n' ? " |\n" : " |-\n";
  if (text.back() == '\n') text.remove_suffix(1);
  while (true) {
    const std::size_t end = text.find('\n');
    if (end != 0 && !text.empty()) out += std::string(indent, ' ') + std::string(text.substr(0, end));
    out += '\n';
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

// The source file of a scalar, as a trailing comment.
std::string source_of(const Node& node) {
  if (node.place().file == nullptr) return "";
  std::string text = " # " + replace_invalid_utf8(*node.place().file);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

// Writes the lines of a container at `indent`. If `hanging`, the caller has written the first line's indentation.
void write_block(const Node& node, std::size_t indent, bool hanging, bool sources, std::string& out) {
  const auto value = [&](const Node& child, bool in_map) {
    const bool block = !child.items().empty() || !child.entries().empty();
    if (child.kind() == NodeKind::string && is_literal(child.text())) {
      out += literal(child.text(), indent + 2);
    } else if (!block) {
      out += child.is_map() ? " {}" : child.is_sequence() ? " []" : " " + yaml_scalar(child);
      out += (sources && child.is_scalar() ? source_of(child) : "") + "\n";
    } else if (in_map) {
      out += "\n";
      write_block(child, indent + 2, false, sources, out);
    } else {
      out += " ";
      write_block(child, indent + 2, true, sources, out);
    }
  };
  const auto begin = [&] {
    if (!std::exchange(hanging, false)) out += std::string(indent, ' ');
  };
  for (const Node& item : node.items()) {
    begin();
    out += "-";
    value(item, false);
  }
  for (const Node::Entry& entry : node.entries()) {
    begin();
    out += (is_plain(entry.key) ? entry.key : in_quotes(entry.key)) + ":";
    value(entry.value, true);
  }
}

}  // namespace

std::string to_json(const Node& node, int indent) {
  JsonWriter writer(indent);
  writer.write(node);
  return std::move(writer.text);
}

namespace {

std::string block_yaml(const Node& node, bool sources) {
  std::string out;
  const bool block = !node.items().empty() || !node.entries().empty();
  if (block) {
    write_block(node, 0, false, sources, out);
  } else {
    out = (node.is_map() ? "{}" : node.is_sequence() ? "[]" : yaml_scalar(node)) + "\n";
  }
  return out;
}

}  // namespace

std::string to_yaml(const Node& node) { return block_yaml(node, false); }
std::string to_sourced_yaml(const Node& node) { return block_yaml(node, true); }

}  // namespace systole
