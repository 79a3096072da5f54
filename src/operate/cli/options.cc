#include "operate/cli/options.h"

#include <fmt/ranges.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <optional>

#include "ground/base/number_from.h"
#include "ground/base/units.h"

namespace systole::cli {

Check at_least(std::int64_t lowest) {
  return {fmt::format("{} or more", lowest), [lowest](const std::string& text) -> std::string {
            const std::optional<std::int64_t> number = number_from(text);
            if (!number) return fmt::format("'{}' is no whole number", text);
            return *number < lowest ? fmt::format("{} is too low: {} or more", text, with_commas(lowest)) : "";
          }};
}

namespace {

Check a_number(std::string wanted, bool (*is_good)(double)) {
  return {wanted, [wanted, is_good](const std::string& text) -> std::string {
            const std::optional<double> number = number_from<double>(text);
            return number && is_good(*number) ? "" : fmt::format("'{}' is no {}", text, wanted);
          }};
}

}  // namespace

Check one_of(std::vector<std::string> words) {
  std::string wanted = fmt::format("{}", fmt::join(words, ", "));
  return {wanted, [wanted, words = std::move(words)](const std::string& text) -> std::string {
            return std::ranges::find(words, text) != words.end() ? "" : fmt::format("'{}' is none of {}", text, wanted);
          }};
}
Check not_negative() {
  return a_number("number of 0 or more", [](double number) { return number >= 0; });
}
Check positive() {
  return a_number("number above 0", [](double number) { return number > 0; });
}

Option Option::required(bool is) const { return Option(option_->required(is)); }
Option Option::check(const Check& check) const {
  return Option(
      option_->check([problem = check.problem](const std::string& text) { return problem(text); }, check.wanted));
}
Option Option::capture_default_str() const { return Option(option_->capture_default_str()); }
Option Option::default_str(const std::string& text) const { return Option(option_->default_str(text)); }
Option Option::expected(int values) const { return Option(option_->expected(values)); }
Option Option::expected(int least, int most) const { return Option(option_->expected(least, most)); }
Option Option::take_all() const { return Option(option_->take_all()); }
Option Option::delimiter(char between) const { return Option(option_->delimiter(between)); }
Option Option::hidden() const { return Option(option_->group("")); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::excludes(const std::string& other) const { return Option(option_->excludes(other)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::needs(const std::string& other) const { return Option(option_->needs(other)); }

template <typename T>
Option Subcommand::add_option(const std::string& name, T& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}
template Option Subcommand::add_option(const std::string&, std::string&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, int&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, double&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&) const;
template Option Subcommand::add_option(const std::string&, std::optional<double>&, const std::string&) const;

Option Subcommand::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}
Option Subcommand::add_flag(const std::string& name, std::int64_t& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}
Option Subcommand::option(const std::string& name) const { return Option(app_->get_option(name)); }

std::vector<std::string> Subcommand::given(const std::vector<std::string>& except) const {
  std::vector<std::string> words;
  for (const CLI::Option* option : app_->get_options()) {
    const std::string name = option->get_name();
    if (!name.starts_with('-') || std::ranges::find(except, name) != except.end()) continue;
    for (const std::string& value : option->results()) words.push_back(name + "=" + value);
  }
  return words;
}

void Subcommand::hidden() const { app_->group(""); }

void Subcommand::otherwise(const std::function<void()>& run) const {
  app_->callback([app = app_, run] {
    if (app->get_subcommands().empty()) run();
  });
}

}  // namespace systole::cli
