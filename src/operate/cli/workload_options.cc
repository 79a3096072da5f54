#include "operate/cli/workload_options.h"

#include "ground/base/counted.h"
#include "operate/cli/device_options.h"

namespace systole::cli {

void add_workload_arguments(Subcommand command, WorkloadArguments& arguments) {
  command.add_option("workload", arguments.path, "the workload's YAML file; - is standard input").required();
  command.add_option("--env", arguments.environment, "lay this environment of the workload over it");
  command.add_option("--set", arguments.sets, "lay KEY=VALUE over the workload, as train.time=20s; may be repeated")
      .take_all();
  command.add_option("--memory", arguments.memory, "hold the process to this much memory, as 2GiB");
  add_device_options(command, arguments.backend, "cpu, or reference: slow, every type");
  command.add_option("--pin-isa", arguments.pin_isa,
                     "compute as a machine with no more than these instructions: avx2, avx512, avx512-bf16, amx");
}

Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context) {
  PrepareOptions options = TRY(systole::prepare_options(arguments, loaded));
  options.data.progress = data_progress(loaded.workload, context);
  return options;
}

DataProgress data_progress(const Workload& workload, Context& context) {
  // Measured on two busy cores, with a sample of 4 MiB of source code and 12 MB to encode: 10 s with 2,048 or 8,192
  // tokens, 19 s with 32,000.
  const std::string once =
      fmt::format("data: training a tokenizer of {} on up to {} of text; this may take a minute, and is kept in {}",
                  counted(workload.data.tokenizer.vocabulary, "token"), to_string(workload.data.tokenizer.sample),
                  workload.data.folder);
  return [&context, once, told = false, waits = false](std::string_view stage, Bytes done) mutable {
    if (stage.empty()) return context.out.progress({});
    if (stage.starts_with("waiting")) {
      if (!waits) context.out.message(fmt::format("data: {}", stage));
      waits = true;
      return;
    }
    context.out.progress(fmt::format("data: {}, {}", stage, to_string(done)));
    if (context.out.terminal() || told || stage != "training the tokenizer") return;
    told = true;
    context.out.message(once);
  };
}

}  // namespace systole::cli
