#pragma once
// The options of a command, and their checks. CLI11 parses them; only three sources include its header, because it adds
// four seconds of compile time to each.
//
//   Subcommand command = add_command(app, "logs", "what a run told", options, context, logs);
//   command.add_option("--every", options->every, "of the steps, only each N-th").check(at_least(1));

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace systole::cli {

// A constraint on a value. `problem` returns what is wrong with a text, or "".
struct Check {
  std::string wanted;  // for the help text
  std::function<std::string(const std::string& text)> problem;
};
Check at_least(std::int64_t lowest);  // a whole number, at least `lowest`
Check one_of(std::vector<std::string> words);
Check not_negative();  // zero or more
Check positive();      // greater than zero

// A handle of a command's option; valid as long as the command line.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool is = true) const;
  Option check(const Check& check) const;
  Option capture_default_str() const;  // help shows the variable's current value
  Option default_str(const std::string& text) const;
  Option expected(int values) const;
  Option expected(int least, int most) const;
  Option take_all() const;  // may be repeated
  Option delimiter(char between) const;
  Option hidden() const;  // not in the help text
  Option excludes(Option other) const;
  Option excludes(const std::string& other) const;
  Option needs(Option other) const;
  Option needs(const std::string& other) const;

 private:
  CLI::Option* option_;
};

// A handle of a command; valid as long as the command line.
class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) : app_(app) {}

  // `value` is set during parsing; it must outlive the command. Supported types: options.cc. A name without dashes is a
  // positional argument.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  Option add_flag(const std::string& name, std::int64_t& value, const std::string& help) const;  // "--prove{3}": 3
  Option option(const std::string& name) const;                                                  // REQUIRES: it exists
  // The options that were given, as words for another process ("--port=8000"), but for these; without positional
  // arguments and hidden options.
  std::vector<std::string> given(const std::vector<std::string>& except) const;

  void hidden() const;                                     // not in the help text
  void otherwise(const std::function<void()>& run) const;  // for a group: the action if no command is named

  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace systole::cli
