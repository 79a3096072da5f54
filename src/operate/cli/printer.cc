#include "operate/cli/printer.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "ground/base/counted.h"
#include "ground/base/os_error.h"
#include "ground/base/shown_text.h"

namespace systole::cli {
namespace {

constexpr int kColumns = 80;      // of a terminal that does not say how wide it is
constexpr Seconds kRepaint{0.1};  // a line that changes more often cannot be read, and fills a log

bool wants_colour() {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no == nullptr || *no == '\0') && term != nullptr && std::string_view(term) != "dumb";
}

int columns_of(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : kColumns;
}

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::plain: return "";
    case Ink::bold: return "\x1b[1m";
    case Ink::dim: return "\x1b[2m";
    case Ink::red: return "\x1b[31m";
    case Ink::green: return "\x1b[32m";
    case Ink::yellow: return "\x1b[33m";
  }
  return "";
}

// Columns that a text takes: its UTF-8 characters, escape sequences aside.
std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;
    }
  }
  return width;
}

// How many bytes its first so many columns are.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++shown > columns) break;
  }
  return end;
}

std::string cut_to(std::string_view text, int columns) {
  return std::string(text.substr(0, bytes_of(text, static_cast<std::size_t>(columns))));
}

// Which columns of these widths stand side by side in `width`: where not all do, the wide ones of prose go first, then
// the last. The first stays.
std::vector<bool> side_by_side(const std::vector<std::size_t>& widths, std::size_t width) {
  std::vector<bool> beside(widths.size(), true);
  for (;;) {
    std::size_t total = 0, last = 0, widest = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!beside[i]) continue;
      total += widths[i] + (i > 0 ? 2 : 0);
      last = i;
      if (i > 0 && (widest == 0 || widths[i] >= widths[widest])) widest = i;
    }
    if (total <= width || last == 0) return beside;
    beside[widths[widest] > width / 3 ? widest : last] = false;
  }
}

}  // namespace

Printer::Printer(Clock& clock, std::FILE* out, std::FILE* err)
    : clock_(clock),
      out_(out),
      err_(err),
      out_terminal_(isatty(fileno(out)) == 1),
      err_terminal_(isatty(fileno(err)) == 1),
      colour_(wants_colour()) {
  if (out_terminal_) width_ = columns_of(fileno(out));
  if (err_terminal_) err_width_ = columns_of(fileno(err));
}

void Printer::write(std::FILE* file, std::string_view text) {
  if (file == out_ && closed_) return;
  std::fwrite(text.data(), 1, text.size(), file);
  if (file != out_) return;
  if (std::ferror(file) != 0 && failed_ == 0) failed_ = errno;
  closed_ = failed_ == EPIPE;
}

void Printer::flush(std::FILE* file) {
  if (std::fflush(file) != 0 && file == out_ && failed_ == 0) failed_ = errno;
  closed_ = failed_ == EPIPE;
}

// Much of what is shown is of others: names in a manifest, a server's message, the line of a program.
void Printer::put(std::FILE* file, std::string_view text) {
  const bool inked = colour_ && (file == out_ ? out_terminal_ : err_terminal_);
  const std::string shown = file == err_ ? printable(without_passwords(text), inked) : printable(text, inked);
  write(file, shown);
  if (!shown.empty() && shown.back() != '\n') write(file, "\n");
  flush(file);
}

void Printer::clear_progress() {
  if (drawn_) std::fputs("\r\x1b[K", err_);
  drawn_ = false;
}

void Printer::data(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (json_) return;
  clear_progress();
  put(out_, text);
}

void Printer::prose(std::string_view text) { data(folded(text, width_)); }

void Printer::stream(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (json_ || text.empty()) return;
  clear_progress();
  newline_ = text.back() == '\n';
  // A terminal's alone: what goes to a file or a program is left as it is. A character may come in two pieces.
  write(out_, out_terminal_ ? printable_piece(text) : std::string(text));
  flush(out_);
}

void Printer::json(const Node& fields) {
  const std::lock_guard lock(mutex_);
  if (!json_ || documented_) return;
  documented_ = true;
  // As text, for `fields` may be tens of thousands of rows, and a document of both would copy them.
  std::string head = to_json(Node::map({{"systole", command_}, {"version", kJsonVersion}}), 2);
  if (fields.entries().empty()) return put(out_, head);
  head.replace(head.size() - 2, 2, ",");  // "\n}"
  write(out_, head);
  put(out_, std::string_view(to_json(fields, 2)).substr(1));  // "{"; a string's control characters stay the same string
}

void Printer::message(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (quiet_) return;
  clear_progress();
  put(err_, text);
}

void Printer::notice(std::string_view text) { message(folded(text, err_width_)); }

void Printer::warning(std::string_view text, std::string_view hint) {
  const std::lock_guard lock(mutex_);
  if (quiet_) return;
  clear_progress();
  put(err_, folded_error(fmt::format("warning: {}{}{}", text, hint.empty() ? "" : "\n  hint: ", hint), err_width_));
}

void Printer::warning(const Error& error) {
  const std::string place = to_string(error.where);
  {
    const std::lock_guard lock(mutex_);
    if (quiet_) return;
    clear_progress();
    put(err_, folded_error(fmt::format("{}{}warning: {}{}{}", place, place.empty() ? "" : ": ", error.message,
                                       error.hint.empty() ? "" : "\n  hint: ", error.hint),
                           err_width_));
  }
  for (const Error& other : error.others) warning(other);
}

std::string Printer::error_text(const Error& error) const {
  std::string text = folded_error(to_string(error), err_width_);
  const std::size_t at = text.find("error:");
  if (err_terminal_ && colour_ && at != std::string::npos) text.replace(at, 6, "\x1b[1;31merror:\x1b[0m");
  return text;
}

void Printer::error(const Error& error) {
  const std::size_t count = 1 + error.others.size();
  {
    const std::lock_guard lock(mutex_);
    clear_progress();
    put(err_, error_text(error));
    if (count > 1) put(err_, counted(count, "error"));
  }
  json(Node::map({{"error", error_node(error)}}));
}

void Printer::progress(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (quiet_ || !err_terminal_) return;
  const Seconds now = clock_.now();
  if (!text.empty() && painted_ && now - *painted_ < kRepaint) return;
  painted_ = now;
  write(err_, "\r\x1b[K" + cut_to(printable(text), columns_of(fileno(err_)) - 1));
  flush(err_);
  drawn_ = !text.empty();
}

void Printer::end_progress() {
  const std::lock_guard lock(mutex_);
  clear_progress();
  std::fflush(err_);
}

std::string Printer::ink(Ink ink, std::string_view text) const {
  if (!out_terminal_ || !colour_ || ink == Ink::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(ink), text);
}

Status Printer::finish() {
  end_progress();
  const std::lock_guard lock(mutex_);
  if (!newline_) write(out_, "\n");
  newline_ = true;
  flush(out_);
  if (failed_ == 0 || closed_) return Done{};
  return os_error(failed_, "write", "stdout");
}

std::string wrapped(std::string_view text, std::size_t width, const std::string& indent) {
  std::string lines;
  for (std::string before; !text.empty(); before = indent) {
    const std::size_t room = width > before.size() ? width - before.size() : 1;
    std::size_t end = text.size();
    if (shown_width(text) > room) {
      const std::size_t word = text.find_first_not_of(' ');  // what is before it is its own indent
      end = text.rfind(' ', bytes_of(text, room));
      if (end == text.npos || end < word) end = std::min(text.find(' ', word), text.size());
    }
    const std::string_view line = text.substr(0, end);
    lines += before + std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  }
  return lines;
}

namespace {

// Where the lines of a wide one go on: below its second column, where it has one in its left half, else further in than
// it begins.
std::size_t hanging(std::string_view line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.substr(0, width / 2).rfind("  ");
  return gap != line.npos && gap > indent ? gap + 2 : indent + 4;
}

}  // namespace

std::string folded(std::string_view text, int width) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool newline = end < text.size();
    if (shown_width(line) <= static_cast<std::size_t>(width)) {
      lines += line;
      if (newline) lines += '\n';
    } else {
      lines += wrapped(line, static_cast<std::size_t>(width),
                       std::string(hanging(line, static_cast<std::size_t>(width)), ' '));
    }
    text.remove_prefix(newline ? end + 1 : end);
  }
  return lines;
}

std::string folded_error(std::string_view text, int width) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    lines += line.starts_with(' ') ? std::string(line) : folded(line, width);
    text.remove_prefix(end);
  }
  return lines;
}

std::string table(std::vector<std::string> headers, const std::vector<std::vector<std::string>>& rows, int width) {
  std::vector<bool> right;
  std::vector<std::size_t> widths;
  for (std::string& header : headers) {
    right.push_back(!header.empty() && header.back() == '>');
    if (right.back()) header.pop_back();
    widths.push_back(shown_width(header));
  }
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown_width(row[i]));
  const std::vector<bool> beside = side_by_side(widths, static_cast<std::size_t>(width));
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!beside[i]) continue;
      const std::string space(widths[i] - shown_width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += right[i] ? space + row[i] : row[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(headers);
  for (const auto& row : rows) {
    add(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (beside[i] || row[i].empty()) continue;
      const std::string label = headers[i].empty() ? "" : headers[i] + ": ";
      text += wrapped("    " + label + row[i], static_cast<std::size_t>(width), std::string(6, ' '));
    }
  }
  return text;
}

Node error_node(const Error& error) {
  Node node = Node::map({{"kind", name_of(error.kind)}, {"message", without_passwords(error.message)}});
  if (!error.where.file.empty()) node.set("file", without_passwords(error.where.file));
  if (error.where.line > 0) node.set("line", error.where.line).set("col", error.where.col);
  if (!error.hint.empty()) node.set("hint", without_passwords(error.hint));
  if (!error.others.empty()) {
    Node others = Node::sequence();
    for (const Error& other : error.others) others.push(error_node(other));
    node.set("others", std::move(others));
  }
  return node;
}

}  // namespace systole::cli
