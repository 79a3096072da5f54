#include "operate/run/weights_option.h"

namespace systole {

std::string WeightsOption::note(const Program& program) const {
  if (kind == "stored") return "";
  return fmt::format("; weights in {}: {}", kind, to_string(memory_by_owner(program)[Residence::parameter]));
}

}  // namespace systole
