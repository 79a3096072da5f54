#pragma once
// Text with fields in braces, which each row of a file fills: the prompts of a batch, the questions of an evaluation.
//
//   const FieldTemplate question = TRY(FieldTemplate::parse("Q: {question}\nA:"));
//   TRY(question.fill(row));                              // of {"question": "Why?"}: "Q: Why?\nA:"
//
// {{ and }} are braces. {a.b} is the field "a.b"; in a row without one, field "b" of the map in field "a".

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"

namespace systole {

// One without a part, as a new one, fills to "".
class FieldTemplate {
 public:
  // Errors: invalid: a brace without its mate, or a field without a name.
  static Result<FieldTemplate> parse(std::string_view text);
  // That field, whatever its name.
  static FieldTemplate of_field(std::string name);

  // The names of its fields, each once.
  std::vector<std::string> fields() const;
  // Numbers and true or false as the row has them. Errors, with the field as their key: invalid: the row has no such
  // field, or it is null, a list or a map.
  Result<std::string> fill(const Node& row) const;
  // The value of the field, if the template is that field and nothing else; null if it is more. Errors: invalid: the
  // row has no such field.
  Result<const Node*> value(const Node& row) const;

 private:
  struct Part {
    std::string text;  // or the name of the field
    bool is_field = false;
  };
  std::vector<Part> parts_;
};

}  // namespace systole
