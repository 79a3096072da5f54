#include "operate/cli/weights_option.h"

namespace systole::cli {

std::string WeightsOption::note(const Program& program) const {
  if (kind == "stored") return "";
  return fmt::format("; weights in {}: {}", kind, to_string(memory_by_owner(program)[Residence::parameter]));
}

void add_weights_option(Subcommand command, WeightsOption& option) {
  command
      .add_option("--weights", option.kind,
                  "stored: as the model has them, of a folder of `systole quantize` in int8; int8: its matrices in a "
                  "quarter of f32's memory, which decodes faster and answers a little differently")
      .check(one_of({"stored", "int8"}))
      .capture_default_str();
}

}  // namespace systole::cli
