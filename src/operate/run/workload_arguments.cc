#include "operate/run/workload_arguments.h"

#include <algorithm>

#include "execute/weights/hf_folder.h"
#include "ground/base/quantity.h"
#include "operate/render/quote.h"
#include "operate/run/xla_machine.h"

namespace systole {
namespace {

constexpr Seconds kAsLongAsItTakes(1e9);  // wait for another process that builds the data until it finishes or dies

}  // namespace

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

Error naming_file(const WorkloadArguments& typed, Error error) {
  constexpr std::string_view kAnyFile = "JOB.yaml";
  std::string text = std::move(error.hint);
  const std::size_t at = typed.path.empty() ? text.npos : text.find(kAnyFile);
  if (at != text.npos) text.replace(at, kAnyFile.size(), words_of(typed));
  error.hint = std::move(text);
  for (Error& other : error.others) other = naming_file(typed, std::move(other));
  return error;
}

Result<LoadedWorkload> load_workload(const WorkloadArguments& arguments) {
  LoadedWorkload loaded;
  WorkloadOptions options{arguments.environment, arguments.sets};
  if (!arguments.kept) options.weights = values_of_weights;
  // A kept workload is complete: keys that depend on train.exact go with it.
  if (arguments.kept && std::ranges::find(options.sets, "train.exact=false") != options.sets.end())
    options.sets.emplace_back("train.logical_shards=null");
  loaded.workload = TRY(load_workload(arguments.path, options, loaded.source));
  if (!arguments.machines && loaded.workload.kind == Workload::Kind::machines) {
    return error(ErrorKind::invalid, "this workload says machines alone, of which nothing runs")
        .at({arguments.path})
        .hinted(fmt::format("systole render {} --on gcloud, or a command: in the place of workload: machines",
                            shell_word(arguments.path)));
  }
  if (!arguments.serves && loaded.workload.kind == Workload::Kind::serve) {
    return error(ErrorKind::invalid, "this workload says how a model is served, and nothing here serves it")
        .at({arguments.path})
        .hinted(fmt::format("systole plan {} plans it; systole serve RUN serves a run's model, or a folder's",
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

Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded) {
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
  options.data.patience = kAsLongAsItTakes;
  return options;
}

}  // namespace systole
