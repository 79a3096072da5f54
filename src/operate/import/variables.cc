#include "operate/import/variables.h"

#include "operate/import/launchers.h"

namespace systole {
namespace {

constexpr std::string_view kNameParts = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

constexpr std::size_t kMostText = 64 << 10;  // for a launcher's word

// The name in `$NAME` or `${NAME}` at `at`, and its end; empty: none.
std::string name_at(std::string_view text, std::size_t at, std::size_t& end) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  const std::size_t begin = at + (braces ? 2 : 1);
  end = std::min(text.find_first_not_of(kNameParts, begin), text.size());
  std::string name(text.substr(std::min(begin, text.size()), end - std::min(begin, end)));
  if (!braces) return name;
  if (end >= text.size() || text[end] != '}') return "";
  ++end;
  return name;
}

std::string whole_name(std::string_view text) {
  std::size_t end = 0;
  const std::string name = text.starts_with('$') ? name_at(text, 0, end) : "";
  return end == text.size() ? name : "";
}

}  // namespace

bool is_variable(const ShellWord& word) { return !whole_name(word.raw).empty(); }

std::optional<std::vector<ShellWord>> words_of_variable(const ShellWord& word, const Draft& draft) {
  const bool quoted = word.raw.size() > 2 && word.raw.front() == '"' && word.raw.back() == '"';
  const std::string name = whole_name(quoted ? std::string_view(word.raw).substr(1, word.raw.size() - 2) : word.raw);
  const ShellWord* value = name.empty() ? nullptr : draft.variable_named(name);
  if (value == nullptr) return std::nullopt;
  if (quoted) return value->expands ? std::nullopt : std::optional(std::vector<ShellWord>{plain_word(value->text)});
  const Result<std::vector<ShellCommand>> read = read_shell(value->text, name);
  if (!read.ok() || read->size() > 1) return std::nullopt;
  if (read->empty()) return std::vector<ShellWord>{};
  if (!read->front().redirections.empty() || !read->front().assignments.empty()) return std::nullopt;
  return read->front().words;
}

ShellWord with_variables(ShellWord word, const Draft& draft) {
  std::string text;
  bool all = true;
  for (std::size_t at = 0; at < word.text.size();) {
    if (word.text[at] != '$') {
      all = all && std::string_view("`*?[~").find(word.text[at]) == std::string_view::npos;
      text += word.text[at++];
      continue;
    }
    std::size_t end = at;
    const std::string name = name_at(word.text, at, end);
    const ShellWord* value = name.empty() ? nullptr : draft.variable_named(name);
    if (value == nullptr || value->expands) return word;
    text += value->text;
    if (text.size() > kMostText) return word;
    at = end;
  }
  if (!word.expands || !all) return word;
  return plain_word(text);
}

}  // namespace systole
