// `systole lock WORKLOAD`: writes a lock file beside the workload, for `run --locked`.

#include "ground/base/files.h"
#include "ground/store/store.h"
#include "operate/cli/workload_options.h"
#include "operate/run/job_lock.h"

#include <filesystem>

namespace systole::cli {
namespace {

struct LockOptions {
  WorkloadArguments workload;
  std::string out;
};

ExitCode lock(const LockOptions& options, Context& context) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  const std::string path = options.out.empty() ? lock_path_of(options.workload.path).value() : options.out;
  PrepareOptions preparing = prepare_options(options.workload, loaded, context).value();
  PlannedRun prepared = prepare(loaded.workload, preparing, context.clock).value();
  context.out.end_progress();
  const Node made = lock_of(prepared).value();
  const std::filesystem::path place = absolute_path(path).value();
  if (!is_folder(place.parent_path())) {
    fail(error(ErrorKind::not_found, "there is no folder '{}'", place.parent_path().string())
             .hinted("--out: a file in a folder that is there"));
  }
  const std::unique_ptr<Store> folder = open_posix_store(place.parent_path().string()).value();
  write_whole(*folder, place.filename().string(), to_json(made, 2) + "\n").value();
  context.out.data("written: " + path);
  context.out.json(Node::map({{"file", path}, {"lock", made}}));
  context.out.message("next: systole run " + words_of(options.workload) + " --locked");
  return ExitCode::done;
}

}  // namespace

void add_lock(Subcommand app, Context& context) {
  auto options = std::make_shared<LockOptions>();
  Subcommand command = add_command(app, "lock", "write down what a workload's result depends on, for run --locked",
                                   options, context, lock);
  add_workload_arguments(command, options->workload);
  command.add_option("--out", options->out, "the lock's file; without: beside the workload, job.yaml's is job.lock");
}

}  // namespace systole::cli
