#include "operate/cli/model_argument.h"

namespace systole::cli {

ServedModel find_model_argument(const std::string& asked, Context& context) {
  ServedModel served = find_model(asked).value();
  if (const std::optional<RegisteredModel>& model = served.registered) {
    context.out.notice(
        fmt::format("{} is {}, stage {}: {}", asked, model->id(), name_of(model->stage), model->source()));
  }
  return served;
}

void add_context_option(Subcommand command, std::int64_t& context, const std::string& what) {
  command.add_option("--context", context, what + "; 0: the model's context, of a published model at most 4096")
      .check(at_least(0))
      .capture_default_str();
}

}  // namespace systole::cli
