#include "execute/serve/json_lines.h"

#include <algorithm>

namespace systole {

std::vector<TextLine> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<TextLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, number});
  }
  return lines;
}

Result<Node> object_on(const TextLine& line, const std::string& file) {
  Result<Node> node = parse_json(line.text, file, {.depth = 64});
  if (node.ok() && !node->is_map()) node = node->wrong("a JSON object");
  if (node.ok()) return node;
  Error wrong = std::move(node).error();
  wrong.where = {file, line.number, wrong.where.col};
  return wrong;
}

}  // namespace systole
