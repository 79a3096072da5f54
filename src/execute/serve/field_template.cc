#include "execute/serve/field_template.h"

#include <algorithm>
#include <utility>

#include "ground/base/nearest.h"

namespace systole {
namespace {

Result<const Node*> field_of(const Node& row, const std::string& name) {
  const Node* at = &row;
  for (std::string_view rest = name;;) {
    if (const Node* const found = at->find(rest)) return found;
    const std::size_t dot = rest.find('.');
    const std::string_view outer = rest.substr(0, dot);
    const Node* const inner = dot == rest.npos ? nullptr : at->find(outer);
    if (inner == nullptr) {
      return key_error(ErrorKind::invalid, name, "there is no such field")
          .coded(ErrorCode::missing_key)
          .hinted(nearest_hint(outer, at->keys()));
    }
    at = inner;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace

Result<FieldTemplate> FieldTemplate::parse(std::string_view text) {
  FieldTemplate made;
  std::string plain;
  const auto refused = [&](std::size_t at, const char* why) {
    return error(ErrorKind::invalid, "the template '{}' has {} at byte {}", text, why, at + 1)
        .hinted("a field is written {name}, a brace {{ or }}");
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool twice = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && twice) {
      plain += c;
      ++at;
    } else if (c == '}') {
      return refused(at, "a '}' without its '{'");
    } else if (c == '{') {
      const std::size_t end = text.find('}', at);
      if (end == text.npos) return refused(at, "a '{' without its '}'");
      const std::string_view name = text.substr(at + 1, end - at - 1);
      if (name.empty() || name.find_first_of("{\n") != name.npos) return refused(at, "a field without a name");
      if (!plain.empty()) made.parts_.push_back({std::exchange(plain, {})});
      made.parts_.push_back({std::string(name), true});
      at = end;
    } else {
      plain += c;
    }
  }
  if (!plain.empty()) made.parts_.push_back({std::move(plain)});
  return made;
}

FieldTemplate FieldTemplate::of_field(std::string name) {
  FieldTemplate made;
  made.parts_.push_back({std::move(name), true});
  return made;
}

std::vector<std::string> FieldTemplate::fields() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) {
    if (part.is_field && std::ranges::find(names, part.text) == names.end()) names.push_back(part.text);
  }
  return names;
}

Result<std::string> FieldTemplate::fill(const Node& row) const {
  std::string text;
  for (const Part& part : parts_) {
    if (!part.is_field) {
      text += part.text;
      continue;
    }
    const Node& value = *TRY(field_of(row, part.text));
    if (value.is_null() || !value.is_scalar()) {
      return key_error(ErrorKind::invalid, part.text, "expected text or a number, found {}", value.describe())
          .hinted("leave the row out, or take another field");
    }
    text += value.text();
  }
  return text;
}

Result<const Node*> FieldTemplate::value(const Node& row) const {
  if (parts_.size() != 1 || !parts_[0].is_field) return nullptr;
  return field_of(row, parts_[0].text);
}

}  // namespace systole
