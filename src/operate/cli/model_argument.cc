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

}  // namespace systole::cli
