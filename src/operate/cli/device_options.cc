#include "operate/cli/device_options.h"

namespace systole::cli {

Option add_device_options(Subcommand command, std::string& backend, const std::string& help) {
  Option option = command.add_option("--backend", backend, help).check(one_of({"cpu", "reference"}));
  command.add_option("--device", backend, "gpu or tpu: through its vendor's XLA; xla-cpu: XLA on this machine")
      .check(one_of({"cpu", "gpu", "tpu", "xla-cpu"}))
      .excludes(option);
  return option;
}

void add_device_options(Subcommand command, std::string& backend) {
  add_device_options(command, backend, "cpu, or reference: slow").capture_default_str();
}

}  // namespace systole::cli
