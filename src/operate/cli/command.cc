#include "operate/cli/command.h"

#include <fmt/ranges.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cctype>
#include <optional>

#include "ground/base/nearest.h"
#include "ground/base/units.h"
#include "ground/base/version.h"

namespace systole::cli {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

const CLI::App* find_command(const CLI::App& parent, std::string_view name) {
  const auto found = parent.get_subcommands([name](const CLI::App* c) { return c->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

namespace {

// The innermost command that the arguments name, and the first word that is none.
std::pair<const CLI::App*, std::string> descend(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& word : arguments) {
    if (word.starts_with('-')) continue;
    const CLI::App* next = find_command(*at, word);
    if (next == nullptr) return {at, names_of_commands(*at).empty() ? "" : word};
    at = next;
  }
  return {at, ""};
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent())
    for (const CLI::Option* option : at->get_options())
      for (const std::string& name : option->get_lnames()) {
        std::string word = "--" + name;  // some are common to all commands
        if (std::ranges::find(names, word) == names.end()) names.push_back(std::move(word));
      }
  return names;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

bool is_letter_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

bool has_letter(const CLI::App& app, char letter) {
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent())
    for (const CLI::Option* option : at->get_options())
      if (option->check_sname(std::string(1, letter))) return true;
  return false;
}

// "-V": the options that begin with its letter.
std::string hint_of_letter(char letter, const std::vector<std::string>& options, const std::string& see) {
  std::string near;
  for (const std::string& name : options)
    if (name[2] == std::tolower(static_cast<unsigned char>(letter)))
      near += fmt::format("{}'{}'", near.empty() ? "did you mean " : " or ", name);
  return near.empty() ? see : near + "?";
}

// The first unknown option, before a "--" that separates another program's words.
std::optional<Error> unknown_option(const CLI::App& command, const std::vector<std::string>& arguments,
                                    const std::string& see) {
  const std::vector<std::string> options = names_of_options(command);
  const auto refused = [&](const std::string& name, std::string hint) {
    return error(ErrorKind::invalid, "unknown option '{}' of '{}'", name, full_name(command))
        .coded(ErrorCode::no_such_option)
        .hinted(std::move(hint));
  };
  for (const std::string& word : arguments) {
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(options, name) == options.end())
      return refused(name, nearest_hint(name, options));
    if (is_letter_option(word) && !has_letter(command, word[1]))
      return refused(word, hint_of_letter(word[1], options, see));
  }
  return std::nullopt;
}

// "systole version": a word that is no command, but an option without its dashes.
std::string hint_of_stranger(const CLI::App& command, const std::string& stranger) {
  const std::vector<std::string> commands = names_of_commands(command), options = names_of_options(command);
  const std::string as_option = "--" + stranger;
  std::vector<std::string> near = nearest(as_option, options, 1);
  if (std::ranges::find(options, as_option) != options.end()) near = {as_option};
  if (near.empty() || !nearest(stranger, commands).empty()) return nearest_hint(stranger, commands);
  return fmt::format("did you mean '{} {}'?", full_name(command), near[0]);
}

Error usage_error(const CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& arguments) {
  const auto [command, stranger] = descend(app, arguments);
  if (!stranger.empty()) {
    return error(ErrorKind::invalid, "unknown command '{} {}'", full_name(*command), stranger)
        .coded(ErrorCode::no_such_command)
        .hinted(hint_of_stranger(*command, stranger));
  }
  const std::string see = fmt::format("`{} --help` lists what it takes", full_name(*command));
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&problem) != nullptr;
  if (extras || !names_of_commands(*command).empty())
    if (std::optional<Error> unknown = unknown_option(*command, arguments, see)) return *std::move(unknown);
  if (extras) return error(ErrorKind::invalid, "{}: {}", full_name(*command), problem.what()).hinted(see);
  if (!names_of_commands(*command).empty()) {
    return error(ErrorKind::invalid, "'{}' is no command by itself", full_name(*command))
        .hinted(fmt::format("{} and one of: {}", full_name(*command), fmt::join(names_of_commands(*command), ", ")));
  }
  return error(ErrorKind::invalid, "{}: {}", full_name(*command), problem.what()).hinted(see);
}

int finish(Printer& out, ExitCode code) {
  const Status finished = out.finish();
  if (!finished.ok()) {
    out.error(finished.error());
    if (code == ExitCode::done) return static_cast<int>(ExitCode::no);  // the exit code of a saved run stays
  }
  return static_cast<int>(code);
}

ExitCode told(Printer& out, const Error& error) {
  out.end_progress();
  out.error(error);
  return exit_code_of(error.kind);
}

}  // namespace

std::string help_text(const CLI::App& command) {
  return command.help(command.get_parent() == nullptr ? "" : full_name(*command.get_parent()));
}

Subcommand add_command(Subcommand parent, const std::string& name, const std::string& help, Context& context,
                       std::function<ExitCode()> run) {
  CLI::App* command = parent.app().add_subcommand(name, help);
  command->callback([command, run = std::move(run), &context] {
    context.out.set_command(full_name(*command).substr(std::string_view("systole ").size()));
    context.exit = run();
  });
  return Subcommand(command);
}

Subcommand add_group(Subcommand parent, const std::string& name, const std::string& help) {
  CLI::App* group = parent.app().add_subcommand(name, help);
  group->require_subcommand(1);
  return Subcommand(group);
}

std::unique_ptr<CLI::App> make_app(Context& context) {
  auto app =
      std::make_unique<CLI::App>("Plans and runs the training of models: what it plans is what it runs.", "systole");
  app->set_version_flag("--version", kSystoleVersion, "print the version");
  app->set_help_flag("-h,--help", "print what a command takes");
  app->fallthrough();
  app->require_subcommand(1);
  app->failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  app->add_flag_callback(
      "--json", [&context] { context.out.set_json(true); }, "print one JSON document instead of text");
  app->add_flag_callback(
      "-q,--quiet", [&context] { context.out.set_quiet(true); }, "no messages, warnings or progress; errors remain");
  for (CLI::Option* option : app->get_options()) option->trigger_on_parse();
  add_commands(Subcommand(app.get()), context);
  return app;
}

int run_command_line(const std::vector<std::string>& arguments) {
  const std::unique_ptr<Clock> clock = real_clock();
  Printer out(*clock);
  Context context{out, *clock, {}, ExitCode::done};
  for (const std::string& word : arguments)
    context.command_line += (context.command_line.empty() ? "systole " : " ") + word;
  const std::unique_ptr<CLI::App> app = make_app(context);
  try {
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return finish(out, context.exit);
  } catch (const CLI::CallForHelp&) {
    const auto [command, stranger] = descend(*app, arguments);
    out.prose(help_text(*command));
    return finish(out, ExitCode::done);
  } catch (const CLI::CallForVersion& version) {
    out.data(version.what());
    return finish(out, ExitCode::done);
  } catch (const CLI::ParseError& problem) {
    if (arguments.empty()) {
      out.prose(app->help());
      return finish(out, ExitCode::usage);
    }
    return finish(out, told(out, usage_error(*app, problem, arguments)));
  } catch (const Failure& failure) { return finish(out, told(out, failure.error())); } catch (const std::bad_alloc&) {
    return finish(out, told(out, error(ErrorKind::does_not_fit, "the machine has no memory left")));
  } catch (const std::exception& unforeseen) {
    return finish(out, told(out, error(ErrorKind::internal, "{}", unforeseen.what())));
  }
}

}  // namespace systole::cli
