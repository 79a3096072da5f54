#include "operate/run/check_here.h"

#include <algorithm>

#include "describe/job/engine_program.h"
#include "describe/models/list.h"
#include "execute/backends/null/null.h"
#include "ground/base/errors.h"
#include "operate/run/built_data.h"
#include "operate/run/file_lint.h"
#include "operate/run/origin.h"
#include "operate/run/planned_replicas.h"
#include "operate/run/run_places.h"
#include "operate/run/xla_machine.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

Status check_origin(const Workload& workload, const WorkloadSource& source) {
  if (workload.resume.from.empty()) return {};
  return fits_origin(workload, TRY(find_origin(workload, source)), source);
}

// Lint warnings, and the secrets that a run on this machine would not find; those that the workload's env sets are not
// checked.
std::vector<Lint> warnings_of(const Workload& workload, const std::string& backend) {
  std::vector<Lint> all = systole::lint(workload);
  // The numbers take a look at the data.
  if (pads_rows(workload, is_xla(backend)))
    if (auto padded = padded_rows(workload, is_xla(backend), measured_rows(workload)))
      all.push_back(*std::move(padded));
  CheckpointSpec keys = workload.checkpoint;
  for (std::string* ref : {&keys.encryption_key, &keys.signing_key})
    for (const auto* given : {&workload.env, &workload.secrets})
      if (std::ranges::any_of(*given, [&](const auto& variable) { return *ref == "env:" + variable.first; }))
        ref->clear();
  for (const MissingKey& missing : missing_keys(keys))
    all.push_back({"missing_key", missing.key, missing.why.message, missing.why.hint});
  std::ranges::move(file_lint(workload), std::back_inserter(all));
  return all;
}

// With the replicas that a cluster would be rendered with, if a workload names one or says on which terms it is had.
Result<LoadedWorkload> with_replicas(LoadedWorkload loaded, Clock& clock) {
  if (job_targets_meant(loaded.workload, loaded.source).empty() && !loaded.workload.resources.provisioning)
    return loaded;
  CatalogView view = TRY(open_catalog_view(clock));
  Result<std::string> planned = set_planned_replicas(view, loaded.workload);
  if (!planned.ok()) return loaded.source.placed(std::move(planned).error());
  return loaded;
}

}  // namespace

Result<CheckedWorkload> check_server(const WorkloadArguments& arguments, const LoadedWorkload& given, Clock& clock) {
  const LoadedWorkload loaded = TRY(with_replicas(given, clock));
  const Workload& workload = loaded.workload;
  TRY(pin_isa(arguments.backend, arguments.pin_isa));
  const Machine machine = TRY(open_machine(arguments.backend, workload.resources, clock));
  const std::unique_ptr<Device> device = make_null_device(machine.device->target());
  const std::unique_ptr<const Model> model = make_model(workload.model);
  const EngineOptions engine = completed(*model, {.slots = workload.serve.slots,
                                                  .cache = workload.serve.context.value_or(0),
                                                  .buckets = {},
                                                  .parameter = workload.serve.parameter,
                                                  .compute = workload.serve.compute,
                                                  .cache_type = workload.serve.cache});
  verify(engine_program(*model, engine, device->target(),
                        [&](const Graph& graph, const GraphNode& node) { return device->workspace(graph, node); }));
  TRY(trace_of(workload));
  std::vector<QuotaNote> quotas = TRY(check_targets(loaded, arguments.environment));
  return CheckedWorkload{.parameters = num_parameters(*model),
                         .engine = engine,
                         .target = device->target().name,
                         .warnings = systole::lint(workload),
                         .quotas = std::move(quotas)};
}

Result<CheckedWorkload> check_training(const WorkloadArguments& arguments, const LoadedWorkload& loaded, Clock& clock) {
  const Workload& workload = loaded.workload;
  TRY(pin_isa(arguments.backend, arguments.pin_isa));
  const MachineUse use{.ranks = workload.num_devices(), .exact = workload.train.exact};
  const Machine machine = TRY(open_machine(arguments.backend, workload.resources, clock, use));
  const std::unique_ptr<Device> device = make_null_device(machine.device->target());
  const Status threads = check_threads(arguments.backend, workload.resources, loaded.source);
  const Status files = check_data_files(workload, loaded.source);
  const Result<Job> made = make_job(workload, *device);
  const Result<std::vector<QuotaNote>> targets = check_targets(loaded, arguments.environment);
  const Status origin = check_origin(workload, loaded.source);
  std::vector<Error> errors;
  if (!threads.ok()) errors.push_back(threads.error());
  if (!files.ok()) errors.push_back(files.error());
  if (!made.ok()) errors.push_back(told_of_job(loaded.source, made.error()));
  if (!targets.ok()) errors.push_back(targets.error());
  if (!origin.ok()) errors.push_back(origin.error());
  if (!errors.empty()) return together(std::move(errors));
  const Job& job = *made;
  verify(*job.program);
  return CheckedWorkload{.parameters = num_parameters(*job.model),
                         .trained = num_trainable(*job.model),
                         .target = device->target().name,
                         .warnings = warnings_of(workload, arguments.backend),
                         .quotas = *targets};
}

}  // namespace systole
