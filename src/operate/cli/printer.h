#pragma once
// The only code that writes to the terminal. Data goes to stdout; messages, errors and progress go to stderr. It knows
// whether each is a terminal, its width, the colour setting (NO_COLOR, TERM=dumb), --quiet and --json.
//
// With --json a command prints one document to stdout and no other data:
//   {"systole":"runs","version":1, ...}      or      {"systole":"runs","version":1,"error":{"kind":...}}
//
// Thread-safe: progress comes from the thread that writes the events. A closed pipe (`| head`) is not an error.
//
// On a terminal, output fits its width: a wide table folds, with its last columns below their row, and sentences, also
// of errors, are wrapped between words. A line to be typed, a hint or the next command, is not wrapped. Elsewhere
// nothing folds: a row is a line.

#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/draw/folded_text.h"
#include "ground/draw/text_table.h"

namespace systole::cli {

enum class Ink { plain, bold, dim, red, green, yellow };

class Printer {
 public:
  // Borrows all arguments.
  explicit Printer(Clock& clock, std::FILE* out = stdout, std::FILE* err = stderr);

  void set_json(bool on) { json_ = on; }
  void set_quiet(bool on) { quiet_ = on; }
  void set_command(std::string name) { command_ = std::move(name); }

  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool terminal() const { return err_terminal_; }  // stderr is a terminal, so progress may be drawn
  int width() const { return width_; }             // of stdout in columns; kUnfolded if it is no terminal
  bool closed() const { return closed_; }          // the reader of stdout has gone

  // Data for people; omitted with --json. Adds a missing final newline.
  void data(std::string_view text);
  // The same for sentences: on a terminal, long lines are wrapped between words.
  void prose(std::string_view text);
  // Writes the text unchanged and at once: for streamed generated text.
  void stream(std::string_view text);
  // The document of this command: "systole" and "version", then `fields`, a map. Does nothing without --json, or the
  // second time.
  void json(const Node& fields);

  void message(std::string_view text);                              // stderr, unless --quiet
  void notice(std::string_view text);                               // the same for sentences, as prose
  void note(std::string_view text, std::string_view hint = {});     // stderr, unless --quiet
  void warning(std::string_view text, std::string_view hint = {});  // stderr, unless --quiet
  void warning(const Error& error);                                 // the same, with its position; each of `others` too
  void error(const Error& error);                                   // stderr; with --json also the document
  // A status line that is redrawn, only on a terminal: at most ten times a second, skipping texts in between. The next
  // other output removes it. An empty text clears the line, including one that another process of ours drew.
  void progress(std::string_view text);
  void end_progress();

  // The text in colour if stdout has colour.
  std::string ink(Ink ink, std::string_view text) const;

  // Errors: io, no_space if stdout did not accept everything, unless its reader has gone.
  Status finish();

 private:
  void put(std::FILE* file, std::string_view text);
  void tell(const std::string& head, std::string_view text, std::string_view hint);
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
  int failed_ = 0;  // errno of the first failed write to stdout
  std::atomic<bool> closed_ = false;
  std::optional<Seconds> painted_;  // when progress was last drawn
  bool documented_ = false;         // the document was printed
  bool drawn_ = false;
  bool newline_ = true;  // stdout is at the start of a line
  std::mutex mutex_;
};

// An Error as {"kind","message","file","line","col","hint","code","key","others"}; all but the first two only if known.
Node error_node(const Error& error);

}  // namespace systole::cli
