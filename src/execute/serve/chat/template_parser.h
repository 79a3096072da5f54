#pragma once
// The syntax tree of a chat template: the part of Jinja that the templates of published models use. Source:
// https://jinja.palletsprojects.com/en/stable/templates, with trim_blocks, lstrip_blocks and loop controls, as
// transformers sets them.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execute/serve/chat/template_value.h"
#include "ground/base/result.h"

namespace systole::chat {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Kind {
    literal,
    name,         // name
    list,         // parts; name: "(" if it is a tuple
    map,          // parts: key, value, key, value, …
    attribute,    // parts[0].name
    subscript,    // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]]; null where nothing stands
    call,         // parts[0](parts[1…], named)
    filter,       // parts[0] | name(parts[1…], named)
    test,         // parts[0] is name(parts[1…])
    unary,        // name parts[0]: "-", "+", "not"
    binary,       // parts[0] name parts[1]
    conditional,  // parts[1] if parts[0] else parts[2]; parts[2] may be null
  };
  Kind kind = Kind::literal;
  int line = 0;
  int height = 1;  // of the tree below it
  std::string name = {};
  Value literal = {};
  std::vector<ExprPtr> parts = {};
  std::vector<std::pair<std::string, ExprPtr>> named = {};
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind {
    text,       // text
    output,     // expressions[0]
    branch,     // if expressions[i] then blocks[i]; one more block is the else
    loop,       // for names in expressions[0] if expressions[1]: blocks[0], else blocks[1]
    set,        // names = expressions[0]; or of a namespace: names[0].names[1]
    set_block,  // names[0] = what blocks[0] prints, through the filters of expressions[0], if any
    macro,      // names[0](names[1…] = defaults in expressions, null: none): blocks[0]
    filter,     // blocks[0] through expressions[0], whose innermost part is the literal that stands for the text
    stop_loop,
    next_turn,
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text = {};
  std::vector<std::string> names = {};
  bool of_namespace = false;
  std::vector<ExprPtr> expressions = {};
  std::vector<Block> blocks = {};
};

// Errors: invalid (syntax), unsupported (a tag); each says the line. Failure is not thrown.
Result<Block> parse_template(std::string_view source);

}  // namespace systole::chat
