#pragma once
// Lines of a text, and JSON Lines: an object on each.
//
//   for (const TextLine& line : lines_of(text)) {
//     if (!line.is_blank()) take(TRY(object_on(line, "rows.jsonl")));
//   }

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"

namespace systole {

struct TextLine {
  std::string_view text;  // without its end, LF or CRLF
  int number = 0;         // from 1
  bool is_blank() const { return text.find_first_not_of(" \t") == text.npos; }
};

// Views of `text`. A byte order mark at its start is skipped, and the last line may lack its end.
std::vector<TextLine> lines_of(std::string_view text);

// `file`: its name in errors. Errors, at the line: invalid: no JSON, not UTF-8, no object, or too deep.
Result<Node> object_on(const TextLine& line, const std::string& file);

}  // namespace systole
