#pragma once
// An example of an evaluation: named fields, and the texts that templates make of them.
//
//   const FieldTemplate context = TRY(FieldTemplate::parse("Question: {question}\nAnswer:"));
//   for (const EvalExample& example : TRY(read_examples("questions.jsonl"))) ask(TRY(context.text(example)));
//
// {a.b} is field b of the map in field a; {{ and }} are braces.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"

namespace systole {

struct EvalExample {
  Node fields;  // a map
  Where where;
};

// A file with a JSON object a line; empty lines are skipped. Errors: as read_text_file; invalid, at its line: not JSON,
// or no object.
Result<std::vector<EvalExample>> read_examples(const std::string& path);

class FieldTemplate {
 public:
  // Errors: invalid: a brace without its other, or a field without a name.
  static Result<FieldTemplate> parse(std::string_view text);

  // Numbers and true or false are written as the file has them. Errors, at the example: not_found: it has no such
  // field; invalid: the field is null, a list or a map.
  Result<std::string> text(const EvalExample& example) const;
  // The value of the field, if the template is that field and nothing else; null if it is more. Errors: not_found.
  Result<const Node*> value(const EvalExample& example) const;

 private:
  struct Piece {
    std::string text;  // or the name of the field
    bool field = false;
  };
  std::vector<Piece> pieces_;
};

}  // namespace systole
