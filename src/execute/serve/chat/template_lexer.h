#pragma once
// The tokens of a chat template: its text, its tags, and what stands in them. White space around tags follows Jinja's
// trim_blocks and lstrip_blocks.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/error.h"

namespace systole::chat {

struct Token {
  enum class Kind { text, begin_output, end_output, begin_block, end_block, name, number, string, sign, end };
  Kind kind = Kind::end;
  std::string text = {};
  int line = 0;
};

// The tokens of the whole template, in which "\n" ends each line; the last one is `end`. Throws Failure: invalid.
std::vector<Token> tokens_of(std::string_view source);

// Throws Failure: an error at a line of a template.
[[noreturn]] void fail_at(int line, const std::string& what, ErrorKind kind = ErrorKind::invalid);

}  // namespace systole::chat
