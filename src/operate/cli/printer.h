#pragma once
// The one place that writes to the terminal. Data goes to stdout; messages, errors and progress go to stderr. It knows
// whether each is a terminal, its width, whether colour is wanted (NO_COLOR, TERM=dumb), --quiet and --json.
//
// With --json a command prints one document to stdout and no other data:
//   {"systole":"runs","version":1, ...}      or      {"systole":"runs","version":1,"error":{"kind":...}}
//
// Thread-safe: progress comes from the thread that writes the events. A reader that goes away (`| head`) is no error.
//
// On a terminal, lines fit its width: a table that is wider folds, its last columns below their row, and sentences are
// broken between words, those of errors too. What is to be typed, a hint or the next command, stays a line. Elsewhere
// nothing folds: a row is a line, whoever reads it.

#include <atomic>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole::cli {

constexpr int kJsonVersion = 1;                             // of the documents that --json prints
constexpr int kUnfolded = std::numeric_limits<int>::max();  // columns where nothing is folded

enum class Ink { plain, bold, dim, red, green, yellow };

class Printer {
 public:
  // All are borrowed.
  explicit Printer(Clock& clock, std::FILE* out = stdout, std::FILE* err = stderr);

  void set_json(bool on) { json_ = on; }
  void set_quiet(bool on) { quiet_ = on; }
  void set_command(std::string name) { command_ = std::move(name); }

  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool terminal() const { return err_terminal_; }  // is stderr one, so that progress may be drawn
  int width() const { return width_; }             // of stdout in columns; kUnfolded when it is no terminal
  bool closed() const { return closed_; }          // whoever read stdout has gone

  // Data for people; left out with --json. A newline is added where there is none.
  void data(std::string_view text);
  // The same of sentences: on a terminal, lines that are too wide are broken between words.
  void prose(std::string_view text);
  // As it is, at once, newline or not: generated text that streams.
  void stream(std::string_view text);
  // The document of this command: `fields`, a map, after "systole" and "version". Left out without --json, and when
  // there was one.
  void json(const Node& fields);

  void message(std::string_view text);                              // stderr, unless --quiet
  void notice(std::string_view text);                               // the same of sentences, as prose
  void warning(std::string_view text, std::string_view hint = {});  // stderr, unless --quiet
  void warning(const Error& error);                                 // the same, with its place; `others` each
  void error(const Error& error);                                   // stderr; with --json the document too
  // One line that is drawn over itself, on a terminal alone: at most ten times a second, what comes between is left
  // out. The next other output removes it. Without text, what another process of ours left on the line is removed.
  void progress(std::string_view text);
  void end_progress();

  // The text in colour where stdout has colour.
  std::string ink(Ink ink, std::string_view text) const;

  // Errors: io, no_space when stdout did not take everything, though somebody read it.
  Status finish();

 private:
  void put(std::FILE* file, std::string_view text);
  void write(std::FILE* file, std::string_view text);
  void flush(std::FILE* file);
  void clear_progress();
  std::string error_text(const Error& error) const;

  Clock& clock_;
  std::FILE* out_;
  std::FILE* err_;
  std::string command_;
  bool json_ = false, quiet_ = false, out_terminal_ = false, err_terminal_ = false, colour_ = true;
  int width_ = kUnfolded, err_width_ = kUnfolded;
  int failed_ = 0;  // errno of the first write to stdout that failed
  std::atomic<bool> closed_ = false;
  std::optional<Seconds> painted_;  // when progress was drawn last
  bool documented_ = false;         // the one document is out
  bool drawn_ = false;
  bool newline_ = true;  // stdout stands at the start of a line
  std::mutex mutex_;
};

// Columns of text: a header and rows of equally many cells. Cells whose header ends in '>' are right-aligned (the sign
// is not shown). Two spaces between columns, none at the end of a line. Where that is wider than `width`, the columns
// that find no room stand below their row, each with its header: "    it lost because: slower".
std::string table(std::vector<std::string> headers, const std::vector<std::vector<std::string>>& rows,
                  int width = kUnfolded);

// Broken between words into lines of `width` columns, all but the first indented.
std::string wrapped(std::string_view text, std::size_t width, const std::string& indent);

// The lines of a text that are wider than `width` broken between words, indented by four beyond their own indent.
std::string folded(std::string_view text, int width);

// The same of the text of an error: what is to be typed stays a line, and so does the source that it shows.
std::string folded_error(std::string_view text, int width);

// An Error as {"kind","message","file","line","col","hint","others"}.
Node error_node(const Error& error);

}  // namespace systole::cli
