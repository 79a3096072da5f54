// `systole help [TOPIC]`: texts that belong to several commands.

#include <fmt/ranges.h>

#include "ground/base/nearest.h"
#include "operate/cli/command.h"

namespace systole::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> topic;  // "exit-codes", or the words of a command
};

std::string help_on(const std::vector<std::string>& topic, const CLI::App& app) {
  if (topic.size() == 1 && topic[0] == "exit-codes") return exit_codes_help();
  const CLI::App* command = &app;
  for (const std::string& word : topic) {
    std::vector<std::string> names = names_of_commands(*command);
    if (command == &app) names.emplace_back("exit-codes");
    command = find_command(*command, word);
    if (command != nullptr) continue;
    const std::string near = nearest(word, names).empty() ? "" : nearest_hint(word, names) + " ";
    fail(error(ErrorKind::not_found, "no help on '{}'", fmt::join(topic, " "))
             .hinted(near + "topics: exit-codes and each command; `systole explain keys` is about the workload"));
  }
  return help_text(*command);
}

ExitCode help(const HelpOptions& options, const CLI::App& app, Context& context) {
  const std::string text = help_on(options.topic, app);
  context.out.prose(text);
  context.out.json(Node::map({{"text", text}}));
  return ExitCode::done;
}

}  // namespace

void add_help(Subcommand app, Context& context) {
  auto options = std::make_shared<HelpOptions>();
  Subcommand command = add_command(app, "help", "explain a command, or `exit-codes`", context,
                                   [options, app, &context] { return help(*options, app.app(), context); });
  command.add_option("topic", options->topic, "a command, as `ckpt list`, or exit-codes");
}

}  // namespace systole::cli
