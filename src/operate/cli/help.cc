// `systole help [TOPIC]`: texts that belong to no single command.

#include "operate/cli/command.h"

namespace systole::cli {
namespace {

struct HelpOptions {
  std::string topic;
};

ExitCode help(const HelpOptions& options, CLI::App& app, Context& context) {
  std::string text;
  if (options.topic.empty()) {
    text = app.help();
  } else if (options.topic == "exit-codes") {
    text = exit_codes_help();
  } else if (const CLI::App* command = find_command(app, options.topic)) {
    text = command->help();
  } else {
    fail(error(ErrorKind::not_found, "no help on '{}'", options.topic)
             .hinted("topics: exit-codes and the name of each command; `systole explain keys` is about the workload"));
  }
  context.out.data(text);
  context.out.json(Node::map({{"text", text}}));
  return ExitCode::done;
}

}  // namespace

void add_help(CLI::App& app, Context& context) {
  auto options = std::make_shared<HelpOptions>();
  CLI::App& command = add_command(app, "help", "explain a command, or `exit-codes`", context,
                                  [options, &app, &context] { return help(*options, app, context); });
  command.add_option("topic", options->topic, "a command, or exit-codes");
}

}  // namespace systole::cli
