// `systole explain [KEY]`: what a key of the workload means, takes and defaults to.

#include "describe/spec/workload.h"
#include "operate/cli/command.h"

namespace systole::cli {
namespace {

struct ExplainOptions {
  std::string topic = "keys";
};

ExitCode explain(const ExplainOptions& options, Context& context) {
  const std::string text = explain_key(options.topic).value();
  context.out.prose(text);
  context.out.json(Node::map({{"topic", options.topic}, {"text", text}}));
  return ExitCode::done;
}

}  // namespace

void add_explain(Subcommand app, Context& context) {
  auto options = std::make_shared<ExplainOptions>();
  Subcommand command =
      add_command(app, "explain", "what a key of the workload means, takes and defaults to", options, context, explain);
  command.add_option("key", options->topic, "train.optimizer.rate, or rate, or a section; without: all keys");
}

}  // namespace systole::cli
