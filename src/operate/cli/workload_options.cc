#include "operate/cli/workload_options.h"

#include "ground/base/quantity.h"

namespace systole::cli {

void add_workload_arguments(CLI::App& command, WorkloadArguments& arguments) {
  command.add_option("workload", arguments.path, "the workload's YAML file; - is standard input")->required();
  command.add_option("--env", arguments.environment, "lay this environment of the workload over it");
  command.add_option("--set", arguments.sets, "lay KEY=VALUE over the workload, as train.time=20s; may be repeated")
      ->take_all();
  command.add_option("--memory", arguments.memory, "hold the process to this much memory, as 2GiB");
  command.add_option("--backend", arguments.backend, "cpu, or reference: slow, every type")
      ->check(CLI::IsMember({"cpu", "reference"}));
}

Result<Workload> load_workload(const WorkloadArguments& arguments) {
  return load_workload(arguments.path, WorkloadOptions{arguments.environment, arguments.sets});
}

Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, Context& context) {
  PrepareOptions options;
  options.backend = arguments.backend;
  if (!arguments.memory.empty()) options.memory_limit = TRY(parse_bytes(arguments.memory));
  options.progress = [&context](std::string_view stage, Bytes done) {
    context.out.progress(fmt::format("data: {}, {}", stage, to_string(done)));
  };
  return options;
}

}  // namespace systole::cli
