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

constexpr int kJsonVersion = 1;  // of --json documents

constexpr int kColumns = 80;      // for a terminal that does not report its width
constexpr Seconds kRepaint{0.1};  // faster changes cannot be read, and fill a log

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

// Much of the text is foreign: names in a manifest, a server's message, a program's output.
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
  // Only for a terminal; files and programs get the text unchanged. A character may come in two pieces.
  write(out_, out_terminal_ ? printable_piece(text) : std::string(text));
  flush(out_);
}

void Printer::json(const Node& fields) {
  const std::lock_guard lock(mutex_);
  if (!json_ || documented_) return;
  documented_ = true;
  // As text: `fields` may have tens of thousands of rows, and a combined document would copy them.
  std::string head = to_json(Node::map({{"systole", command_}, {"version", kJsonVersion}}), 2);
  if (fields.entries().empty()) return put(out_, head);
  head.replace(head.size() - 2, 2, ",");  // "\n}"
  write(out_, head);
  put(out_, std::string_view(to_json(fields, 2)).substr(1));  // "{"; escaped control characters keep their meaning
}

void Printer::message(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (quiet_) return;
  clear_progress();
  put(err_, text);
}

void Printer::notice(std::string_view text) { message(folded(text, err_width_)); }

void Printer::tell(const std::string& head, std::string_view text, std::string_view hint) {
  const std::lock_guard lock(mutex_);
  if (quiet_) return;
  clear_progress();
  put(err_, folded_error(fmt::format("{}: {}{}{}", head, text, hint.empty() ? "" : "\n  hint: ", hint), err_width_));
}

void Printer::note(std::string_view text, std::string_view hint) { tell("note", text, hint); }
void Printer::warning(std::string_view text, std::string_view hint) { tell("warning", text, hint); }

void Printer::warning(const Error& error) {
  const std::string place = to_string(error.where);
  tell(place.empty() ? "warning" : place + ": warning", error.message, error.hint);
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

Node error_node(const Error& error) {
  Node node = Node::map({{"kind", name_of(error.kind)}, {"message", without_passwords(error.message)}});
  if (!error.where.file.empty()) node.set("file", without_passwords(error.where.file));
  if (error.where.line > 0) node.set("line", error.where.line).set("col", error.where.col);
  if (!error.hint.empty()) node.set("hint", without_passwords(error.hint));
  if (error.code != ErrorCode::none) node.set("code", name_of(error.code));
  if (!error.key.empty()) node.set("key", without_passwords(error.key));
  if (!error.others.empty()) {
    Node others = Node::sequence();
    for (const Error& other : error.others) others.push(error_node(other));
    node.set("others", std::move(others));
  }
  return node;
}

}  // namespace systole::cli
