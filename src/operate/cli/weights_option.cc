#include "operate/cli/weights_option.h"

namespace systole::cli {

std::string WeightsOption::note(const Program& program) const {
  if (kind == "stored") return "";
  return fmt::format("; weights in {}: {}", kind, to_string(memory_by_owner(program)[Residence::parameter]));
}

void add_weights_option(Subcommand command, WeightsOption& option) {
  command
      .add_option(
          "--weights", option.kind,
          "stored: as the model has them (a folder of `systole quantize`: in int8 or int4); int8: its matrices in "
          "a quarter of f32's memory, which decodes faster and answers a little differently; int4: in a sixth, "
          "a GGUF file's Q4_0 and Q4_1 as they are")
      .check(one_of({"stored", "int8", "int4"}))
      .capture_default_str();
}

}  // namespace systole::cli
