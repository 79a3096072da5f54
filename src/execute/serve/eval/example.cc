#include "execute/serve/eval/example.h"

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

Result<const Node*> field_of(const EvalExample& example, const std::string& name) {
  const Node* at = &example.fields;
  std::string_view rest = name;
  while (true) {
    const std::string_view key = rest.substr(0, rest.find('.'));
    const Node* const found = at->find(key);
    if (found == nullptr) {
      return error(ErrorKind::not_found, "the example has no field '{}', which the template takes", name)
          .at(Where(example.where))
          .hinted(nearest_hint(key, at->keys()));
    }
    at = found;
    if (key.size() == rest.size()) return at;
    rest.remove_prefix(key.size() + 1);
  }
}

}  // namespace

Result<std::vector<EvalExample>> read_examples(const std::string& path) {
  const std::string text = TRY(read_text_file(path));
  std::vector<EvalExample> examples;
  int number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const char* const hint = "each line is one object, such as {\"question\": \"...\", \"answer\": \"...\"}";
    Result<Node> fields = parse_json(line, path);
    if (!fields.ok()) {
      Error bad = std::move(fields).error();
      bad.where = {path, number, bad.where.col};
      if (bad.hint.empty()) bad.hint = hint;
      return bad;
    }
    if (!fields->is_map()) {
      return error(ErrorKind::invalid, "expected an object, found {}", fields->describe())
          .at({path, number, 1})
          .hinted(hint);
    }
    examples.push_back({std::move(fields).value(), {path, number, 1}});
  }
  return examples;
}

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
      const std::string name(text.substr(at + 1, end - at - 1));
      if (name.empty() || name.find_first_of("{ \n") != name.npos) return refused(at, "a field without a name");
      if (!plain.empty()) made.pieces_.push_back({std::exchange(plain, {}), false});
      made.pieces_.push_back({name, true});
      at = end;
    } else {
      plain += c;
    }
  }
  if (!plain.empty()) made.pieces_.push_back({plain, false});
  return made;
}

Result<std::string> FieldTemplate::text(const EvalExample& example) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    if (!piece.field) {
      text += piece.text;
      continue;
    }
    const Node* const value = TRY(field_of(example, piece.text));
    if (!value->is_scalar() || value->is_null()) {
      return error(ErrorKind::invalid, "the field '{}' is {}, and the template takes text or a number", piece.text,
                   value->describe())
          .at(Where(example.where))
          .hinted("leave the example out, or take another field");
    }
    text += value->text();
  }
  return text;
}

Result<const Node*> FieldTemplate::value(const EvalExample& example) const {
  if (pieces_.size() != 1 || !pieces_[0].field) return nullptr;
  return field_of(example, pieces_[0].text);
}

}  // namespace systole
