#include "operate/targets/gke/hcl.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/base/error.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

constexpr std::size_t kIndent = 2, kWidth = 110;

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool is_reference(std::string_view path) {
  for (std::size_t at = 0;;) {
    const std::size_t dot = path.find('.', at);
    if (!is_name(path.substr(at, dot - at))) return false;
    if (dot == path.npos) return true;
    at = dot + 1;
  }
}

// Text within quotes. "${" and "%{" begin a template unless their first character is doubled.
std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
          if ((c == '$' || c == '%') && i + 1 < text.size() && text[i + 1] == '{') out += c;
        }
    }
  }
  return out;
}

std::string hcl_string(std::string_view text) { return '"' + escaped(text) + '"'; }

std::string comment_lines(const std::string& comment, std::size_t indent) {
  std::string lines;
  for (std::size_t at = 0; at < comment.size();) {
    const std::size_t end = std::min(comment.find('\n', at), comment.size());
    lines += fmt::format("{:{}}# {}\n", "", indent, comment_text(std::string_view(comment).substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

void print(const HclBlock& block, std::size_t indent, std::string& out);

// `=` is aligned within a run of one-line attributes; a comment or a multi-line value ends the run.
void print_body(const HclBlock& block, std::size_t indent, std::string& out) {
  const auto& all = block.attributes;
  std::vector<std::string> values;
  for (const HclAttribute& attribute : all) values.push_back(attribute.value.print(indent));
  const auto long_one = [&](std::size_t i) { return values[i].find('\n') != std::string::npos; };
  for (std::size_t first = 0; first < all.size();) {
    std::size_t end = first + 1, width = all[first].name.size();
    if (!long_one(first)) {
      for (; end < all.size() && all[end].comment.empty() && !long_one(end); ++end)
        width = std::max(width, all[end].name.size());
    }
    out += comment_lines(all[first].comment, indent);
    for (; first < end; ++first) {
      CHECK(is_name(all[first].name), "'{}' is no name of an attribute", all[first].name);
      out += fmt::format("{:{}}{:<{}} = {}\n", "", indent, all[first].name, width, values[first]);
    }
  }
  for (const HclBlock& inner : block.blocks) {
    if (!all.empty() || &inner != block.blocks.data()) out += '\n';
    print(inner, indent, out);
  }
}

void print(const HclBlock& block, std::size_t indent, std::string& out) {
  CHECK(is_name(block.type), "'{}' is no type of a block", block.type);
  out += comment_lines(block.comment, indent);
  out += fmt::format("{:{}}{}", "", indent, block.type);
  for (const std::string& label : block.labels) out += ' ' + hcl_string(label);
  if (block.attributes.empty() && block.blocks.empty()) {
    out += " {}\n";
    return;
  }
  out += " {\n";
  print_body(block, indent + kIndent, out);
  out += fmt::format("{:{}}}}\n", "", indent);
}

}  // namespace

HclValue::HclValue(std::string_view text) : text_(hcl_string(text)) {}

HclValue HclValue::reference(std::string_view path) {
  CHECK(is_reference(path), "'{}' refers to nothing", path);
  HclValue value;
  value.text_ = path;
  return value;
}

HclValue HclValue::joined(std::string_view path, std::string_view after, std::string_view before) {
  CHECK(is_reference(path), "'{}' refers to nothing", path);
  HclValue value;
  std::string front = escaped(before);
  if (front.ends_with('$')) front.replace(front.size() - 1, 1, "\\u0024");  // it would double the reference's '$'
  value.text_ = fmt::format("\"{}${{{}}}{}\"", front, path, escaped(after));
  return value;
}

HclValue HclValue::list(const std::vector<HclValue>& values) {
  HclValue value;
  value.kind_ = Kind::list;
  value.items_ = values;
  return value;
}

HclValue HclValue::map(const std::vector<std::pair<std::string, HclValue>>& entries) {
  HclValue value;
  value.kind_ = Kind::map;
  for (const auto& [key, item] : entries) {
    value.keys_.push_back(is_name(key) ? key : hcl_string(key));
    value.items_.push_back(item);
  }
  return value;
}

std::string HclValue::print(std::size_t indent) const {
  if (kind_ == Kind::scalar) return text_;
  if (items_.empty()) return kind_ == Kind::list ? "[]" : "{}";
  std::size_t width = 0, most = 0;
  for (const std::string& key : keys_) most = std::max(most, key.size());
  std::vector<std::string> items;
  bool lines = false;
  for (const HclValue& item : items_) {
    items.push_back(item.print(indent + kIndent));
    width += items.back().size() + 2;
    lines |= item.kind_ != Kind::scalar;
  }
  if (kind_ == Kind::list && !lines && indent + width < kWidth) return fmt::format("[{}]", fmt::join(items, ", "));
  std::string out = kind_ == Kind::list ? "[\n" : "{\n";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += std::string(indent + kIndent, ' ');
    if (kind_ == Kind::map) {
      // As for attributes: a multi-line value is in no run.
      out += lines ? keys_[i] + " = " : fmt::format("{:<{}} = ", keys_[i], most);
    }
    out += items[i] + (kind_ == Kind::list ? ",\n" : "\n");
  }
  return out + std::string(indent, ' ') + (kind_ == Kind::list ? ']' : '}');
}

HclBlock& HclBlock::add(std::string inner, std::vector<HclAttribute> with) {
  blocks.push_back({std::move(inner), {}, std::move(with)});
  return blocks.back();
}

std::string to_hcl(const std::vector<HclBlock>& blocks) {
  std::string out;
  for (const HclBlock& block : blocks) {
    if (&block != blocks.data()) out += '\n';
    print(block, 0, out);
  }
  return out;
}

}  // namespace systole
