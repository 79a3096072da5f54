#include "operate/import/shell_words.h"

#include <algorithm>

namespace systole {
namespace {

bool is_name_part(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kPrograms[] = {"if",     "then",     "else", "elif", "fi",  "for",  "while", "until",
                                          "do",     "done",     "case", "esac", "[[",  "]]",   "{",     "}",
                                          "select", "function", "((",   "!",    "let", "eval", "coproc"};

// Spaces from web pages at which a shell does not split words: U+00A0, U+2007, U+202F.
constexpr std::string_view kHardSpaces[] = {"\xc2\xa0", "\xe2\x80\x87", "\xe2\x80\xaf"};

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}
  Result<std::vector<ShellCommand>> read();

 private:
  bool ends() const { return at_ >= text_.size(); }
  char now() const { return ends() ? '\0' : text_[at_]; }
  char next(std::size_t ahead = 1) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void step() {
    if (now() == '\n') ++line_;
    ++at_;
  }
  Where here(int line) const { return {file_, line, 1}; }

  void skip_blanks();
  Result<ShellWord> word();
  Status quoted(ShellWord& word, char quote);
  Status expansion(ShellWord& word);
  Status operation();
  Status end_command(const std::string& joined_by);
  Status add_word(ShellWord word);
  Status redirection(const std::string& descriptor);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
};

// Skips spaces, line continuations, comments.
void ShellReader::skip_blanks() {
  while (!ends()) {
    if (now() == ' ' || now() == '\t' || now() == '\r') {
      step();
    } else if (now() == '\\' && (next() == '\n' || (next() == '\r' && next(2) == '\n'))) {
      step();
      if (now() == '\r') step();
      step();
    } else if (now() == '#') {
      while (!ends() && now() != '\n') step();
    } else {
      return;
    }
  }
}

// In "...", a backslash escapes only $ ` " \ and newline.
Status ShellReader::quoted(ShellWord& word, char quote) {
  const int began = line_;
  step();
  while (!ends() && now() != quote) {
    if (quote == '"' && now() == '$') {
      TRY(expansion(word));
    } else if (quote == '"' && now() == '`') {
      TRY(expansion(word));
    } else if (quote == '"' && now() == '\\' && next() == '\n') {
      step();
      step();
    } else {
      if (quote == '"' && now() == '\\' && std::string_view("$`\"\\").find(next()) != std::string_view::npos &&
          next() != '\0')
        step();
      word.text += now();
      step();
    }
  }
  if (ends())
    return error(ErrorKind::invalid, "the quote {} does not end", quote)
        .at(here(began))
        .hinted("paste the whole of it");
  step();
  return {};
}

// Skips $X, ${...}, $(...), $((...)), `...`, unchanged.
Status ShellReader::expansion(ShellWord& word) {
  const int began = line_;
  const std::size_t from = at_;
  const bool tick = now() == '`';
  const char open = next();
  step();
  if (tick || open == '(' || open == '{') {
    const char last = tick ? '`' : open == '(' ? ')' : '}';
    int depth = 0;
    char quote = '\0';
    while (!ends()) {
      const char c = now();
      if (c == '\\') {
        step();
      } else if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (!tick && (c == '\'' || c == '"')) {
        quote = c;
      } else if (!tick && c == open) {
        ++depth;
      } else if (c == last && (tick || --depth == 0)) {
        break;
      }
      if (!ends()) step();
    }
    if (ends())
      return error(ErrorKind::invalid, "an expansion does not end").at(here(began)).hinted("paste the whole of it");
    step();
    word.expands = true;
  } else if (is_name_part(open)) {
    if (is_digit(open)) {
      step();
    } else {
      while (is_name_part(now())) step();
    }
    word.expands = true;
  } else if (open != '\0' && std::string_view("?@*#$!-").find(open) != std::string_view::npos) {
    step();
    word.expands = true;
  }
  word.text += text_.substr(from, at_ - from);
  return {};
}

Result<ShellWord> ShellReader::word() {
  ShellWord word;
  const std::size_t from = at_;
  bool first = true;
  while (!ends()) {
    const char c = now();
    if (std::string_view(" \t\r\n;&|<>()").find(c) != std::string_view::npos) break;
    if (find_hard_space(text_.substr(at_, 3)) == 0)
      return error(ErrorKind::invalid, "a no-break space stands there, which is no space to a shell")
          .at(here(line_))
          .hinted("type the space again");
    if (c == '\'' || c == '"') {
      TRY(quoted(word, c));
    } else if (c == '$' || c == '`') {
      if (c == '$' && next() == '\'')
        return error(ErrorKind::unsupported, "$'...' is not read").at(here(line_)).hinted("write the text plainly");
      TRY(expansion(word));
    } else if (c == '\\') {
      step();
      if (now() == '\n') {
        step();
      } else if (!ends()) {
        word.text += now();
        step();
      }
    } else {
      if (std::string_view("*?[").find(c) != std::string_view::npos || (first && c == '~')) word.expands = true;
      word.text += c;
      step();
    }
    first = false;
  }
  word.raw = std::string(text_.substr(from, at_ - from));
  return word;
}

Status ShellReader::add_word(ShellWord word) {
  if (command_.words.empty() && command_.assignments.empty()) command_.line = line_;
  if (command_.words.empty()) {
    if (word.raw == "$") return {};  // a prompt
    if (std::ranges::find(kPrograms, word.raw) != std::end(kPrograms))
      return error(ErrorKind::unsupported, "'{}' makes it a program of the shell's, which is not run here", word.raw)
          .at(here(line_))
          .hinted("paste the line that starts your program, and the #SBATCH lines where there are some");
    std::size_t equals = 0;
    while (equals < word.raw.size() && is_name_part(word.raw[equals])) ++equals;
    if (equals > 0 && equals < word.raw.size() && word.raw[equals] == '=' && !is_digit(word.raw[0])) {
      ShellWord value = word;
      value.text = word.text.substr(equals + 1);
      value.raw = word.raw.substr(equals + 1);
      command_.assignments.emplace_back(word.raw.substr(0, equals), std::move(value));
      return {};
    }
  }
  command_.words.push_back(std::move(word));
  return {};
}

// `joined_by`: separator to the next command.
Status ShellReader::end_command(const std::string& joined_by) {
  const bool empty = command_.words.empty() && command_.assignments.empty();
  if (empty && command_.redirections.empty()) {
    // A line that continues after '&&', or an empty one.
    if (joined_by != "" && joined_by != ";" && joined_by != "&") return {};
    if (commands_.empty() || command_.before.empty() || command_.before == ";") command_.before = joined_by;
    return {};
  }
  command_.behind = joined_by == "&";
  commands_.push_back(std::exchange(command_, {}));
  command_.before = joined_by;
  command_.line = line_;
  return {};
}

Status ShellReader::redirection(const std::string& descriptor) {
  std::string text = descriptor;
  const int line = line_;
  while (now() == '<' || now() == '>' || now() == '&' || now() == '|') {
    text += now();
    step();
  }
  if (text.find("<<") != text.npos)
    return error(ErrorKind::unsupported, "a here-document is a program of the shell's, which is not run here")
        .at(here(line))
        .hinted("put that text into a file, and paste the line that starts your program");
  skip_blanks();
  const ShellWord where = TRY(word());
  if (where.raw.empty()) return error(ErrorKind::invalid, "'{}' goes nowhere", text).at(here(line));
  command_.redirections.push_back(text + (where.raw[0] == '&' || text.ends_with('&') ? "" : " ") + where.raw);
  return {};
}

Status ShellReader::operation() {
  const char c = now();
  if (c == '(' || c == ')')
    return error(ErrorKind::unsupported, "'{}' makes it a program of the shell's, which is not run here", c)
        .at(here(line_))
        .hinted("paste the line that starts your program");
  if (c == '<' || c == '>' || (c == '&' && next() == '>')) return redirection("");
  std::string joined(1, c);
  step();
  if ((c == '&' || c == '|') && now() == c) {
    joined += c;
    step();
  } else if (c == '|' && now() == '&') {
    step();
  }
  if (c == '\n') joined = "";
  return end_command(joined);
}

Result<std::vector<ShellCommand>> ShellReader::read() {
  if (const std::size_t nul = text_.find('\0'); nul != text_.npos)
    return error(ErrorKind::invalid, "a NUL can stand in no script")
        .at({file_})
        .hinted("a script, line or manifest, as text");
  while (true) {
    skip_blanks();
    if (ends()) break;
    if (std::string_view("\n;&|<>()").find(now()) != std::string_view::npos) {
      TRY(operation());
      continue;
    }
    std::size_t digits = at_;
    while (digits < text_.size() && is_digit(text_[digits])) ++digits;
    if (digits > at_ && digits < text_.size() && (text_[digits] == '<' || text_[digits] == '>')) {
      const std::string descriptor(text_.substr(at_, digits - at_));
      at_ = digits;
      TRY(redirection(descriptor));
      continue;
    }
    ShellWord read = TRY(word());
    if (now() == '(' && !read.raw.empty())
      return error(ErrorKind::unsupported, "'{}()' makes it a program of the shell's, which is not run here", read.raw)
          .at(here(line_))
          .hinted("paste the line that starts your program");
    TRY(add_word(std::move(read)));
  }
  TRY(end_command(""));
  return std::move(commands_);
}

}  // namespace

std::size_t find_hard_space(std::string_view text) {
  std::size_t first = text.npos;
  for (const std::string_view space : kHardSpaces) first = std::min(first, text.find(space));
  return first;
}

std::string ShellCommand::raw() const {
  std::string text;
  for (const auto& [name, value] : assignments) text += (text.empty() ? "" : " ") + name + "=" + value.raw;
  for (const ShellWord& word : words) text += (text.empty() ? "" : " ") + word.raw;
  return text;
}

Result<std::vector<ShellWord>> read_plain_words(std::string_view line, const Where& where) {
  std::vector<ShellWord> words;
  for (std::size_t at = 0;;) {
    at = std::min(line.find_first_not_of(" \t\r", at), line.size());
    if (at == line.size() || line[at] == '#') return words;
    ShellWord word;
    const std::size_t from = at;
    char quote = '\0';
    for (; at < line.size() && (quote != '\0' || std::string_view(" \t\r").find(line[at]) == line.npos); ++at) {
      const char c = line[at];
      if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
        word.text += line[++at];
      } else {
        word.text += c;
      }
    }
    if (quote != '\0')
      return error(ErrorKind::invalid, "the quote {} does not end", quote)
          .at(Where(where))
          .hinted("end it in its line");
    word.raw = std::string(line.substr(from, at - from));
    words.push_back(std::move(word));
  }
}

Result<std::vector<ShellCommand>> read_shell(std::string_view text, const std::string& file) {
  return ShellReader(text, file).read();
}

}  // namespace systole
