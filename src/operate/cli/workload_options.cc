#include "operate/cli/workload_options.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/quantity.h"
#include "operate/cli/hf_folder.h"
#include "operate/cli/xla_machine.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

constexpr Seconds kAsLongAsItTakes(1e9);  // somebody else who makes the data is waited for until they are done or dead

}  // namespace

void add_workload_arguments(Subcommand command, WorkloadArguments& arguments) {
  command.add_option("workload", arguments.path, "the workload's YAML file; - is standard input").required();
  command.add_option("--env", arguments.environment, "lay this environment of the workload over it");
  command.add_option("--set", arguments.sets, "lay KEY=VALUE over the workload, as train.time=20s; may be repeated")
      .take_all();
  command.add_option("--memory", arguments.memory, "hold the process to this much memory, as 2GiB");
  Option backend = command.add_option("--backend", arguments.backend, "cpu, or reference: slow, every type")
                       .check(one_of({"cpu", "reference"}));
  command
      .add_option("--device", arguments.backend, "gpu or tpu: through its vendor's XLA; xla-cpu: XLA on this machine")
      .check(one_of({"cpu", "gpu", "tpu", "xla-cpu"}))
      .excludes(backend);
  command.add_option("--pin-isa", arguments.pin_isa,
                     "compute as a machine with no more than these instructions: avx2, avx512, avx512-bf16, amx");
}

std::string machine_words(const WorkloadArguments& arguments) {
  std::string text;
  if (!arguments.memory.empty()) text += " --memory " + shell_word(arguments.memory);
  if (arguments.backend != WorkloadArguments().backend)
    text += (is_xla(arguments.backend) ? " --device " : " --backend ") + shell_word(arguments.backend);
  if (!arguments.pin_isa.empty()) text += " --pin-isa " + shell_word(arguments.pin_isa);
  return text;
}

std::string words_of(const WorkloadArguments& arguments) {
  std::string text = shell_word(arguments.path);
  if (!arguments.environment.empty()) text += " --env " + shell_word(arguments.environment);
  for (const std::string& set : arguments.sets) text += " --set " + shell_word(set);
  return text + machine_words(arguments);
}

Result<LoadedWorkload> load_workload(const WorkloadArguments& arguments) {
  LoadedWorkload loaded;
  WorkloadOptions options{arguments.environment, arguments.sets};
  if (!arguments.kept) options.weights = values_of_weights;
  // A kept workload says all: what goes with exact goes with it.
  if (arguments.kept && std::ranges::find(options.sets, "train.exact=false") != options.sets.end())
    options.sets.emplace_back("train.logical_shards=null");
  loaded.workload = TRY(load_workload(arguments.path, options, loaded.source));
  if (!arguments.machines && loaded.workload.kind == Workload::Kind::machines) {
    return error(ErrorKind::invalid, "this workload says machines alone, of which nothing runs")
        .at({arguments.path})
        .hinted(fmt::format("systole render {} --on gcloud, or a command: in the place of workload: machines",
                            shell_word(arguments.path)));
  }
  if (!arguments.command && !loaded.workload.command.empty()) {
    return error(ErrorKind::invalid,
                 "this workload runs a program of its own (command), of which nothing is known here")
        .at({arguments.path})
        .hinted(fmt::format("systole run {} --ranks 2", shell_word(arguments.path)));
  }
  return loaded;
}

Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context) {
  TRY(pin_isa(arguments.backend, arguments.pin_isa));
  PrepareOptions options;
  options.backend = arguments.backend;
  options.pin_isa = arguments.pin_isa;
  options.source = loaded.source;
  options.begins = !arguments.kept;
  if (!arguments.memory.empty()) {
    Result<Bytes> memory = parse_bytes(arguments.memory);
    if (!memory.ok()) {
      Error wrong = std::move(memory).error();
      wrong.message = "--memory: " + wrong.message;
      return wrong;
    }
    options.memory_limit = *memory;
  }
  options.data.progress = data_progress(loaded.workload, context);
  options.data.patience = kAsLongAsItTakes;
  return options;
}

Progress data_progress(const Workload& workload, Context& context) {
  // Measured on two busy cores, 4 MiB of source code as sample, 12 MB to encode: 10 s with 2,048 or 8,192 tokens, 19 s
  // with 32,000.
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
