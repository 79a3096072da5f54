#pragma once
// The options of a command, and their checks. CLI11 reads them; its header stands in three sources alone, since each
// file that includes it takes four seconds more to compile.
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

// What a value must be. `problem` returns what is wrong with a text, or "" where nothing is.
struct Check {
  std::string wanted;  // as help prints it
  std::function<std::string(const std::string& text)> problem;
};
Check at_least(std::int64_t lowest);  // a whole number of `lowest` or more
Check one_of(std::vector<std::string> words);
Check not_negative();  // a number, zero or more
Check positive();      // a number above zero

// An option that a command has: a handle, valid as long as the command line.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool is = true) const;
  Option check(const Check& check) const;
  Option capture_default_str() const;  // help prints the value that the variable has now
  Option default_str(const std::string& text) const;
  Option expected(int values) const;
  Option expected(int least, int most) const;
  Option take_all() const;  // may be repeated
  Option delimiter(char between) const;
  Option hidden() const;  // help does not list it
  Option excludes(Option other) const;
  Option excludes(const std::string& other) const;
  Option needs(Option other) const;
  Option needs(const std::string& other) const;

 private:
  CLI::Option* option_;
};

// A command: a handle, valid as long as the command line.
class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) : app_(app) {}

  // `value` is set while the command line is read; it must outlive the command. Its types: options.cc. A name without
  // dashes is an argument by place.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  Option add_flag(const std::string& name, std::int64_t& value, const std::string& help) const;  // "--prove{3}": 3
  Option option(const std::string& name) const;  // REQUIRES: there is one

  void hidden() const;                                     // help does not list it
  void otherwise(const std::function<void()>& run) const;  // of one that holds others: what it does when none is named

  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace systole::cli
