#include "operate/run/asked_run.h"

#include <algorithm>
#include <cstdlib>

#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "operate/check/lint.h"
#include "operate/launch/secrets.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/data_told.h"
#include "operate/run/file_lint.h"
#include "operate/run/held_plan.h"
#include "operate/run/inject.h"
#include "operate/run/job_lock.h"
#include "operate/run/origin.h"
#include "operate/run/rank_threads.h"
#include "operate/run/run_places.h"
#include "operate/run/xla_machine.h"

namespace systole {
namespace {

Status hold_to_lock(const PlannedRun& prepared, const Node& now, const std::string& path) {
  if (prepared.workload.train.time) {
    return error(ErrorKind::invalid, "--locked: train.time ends a run where the clock says, each time elsewhere")
        .hinted("--set train.steps=N ends it at a step");
  }
  return check_lock(TRY(read_lock(path)), now, path);
}

// Missing keys are reported before the folder is taken, so a refused run leaves no folder.
Status check_keys(const Workload& workload, const WorkloadSource& source) {
  std::vector<Error> errors;
  for (MissingKey& missing : missing_keys(workload.checkpoint)) {
    Error& why = missing.why;
    errors.push_back(source.placed(key_error(why.kind, std::move(missing.key), "{}", why.message)
                                       .at(std::move(why.where))
                                       .hinted(std::move(why.hint))
                                       .coded(why.code)));
  }
  if (errors.empty()) return {};
  return together(std::move(errors));
}

void tell_origin(const PlannedRun& prepared, const RunMessages& messages) {
  if (!prepared.origin) return;
  const Origin& origin = *prepared.origin;
  for (const checkpoint::Rejected& one : origin.passed_over) {
    Error told = passed_over(one, origin.place.root, origin.place.path);
    told.message = "resume.from: " + told.message;
    messages.warning(told);
  }
  const checkpoint::Keys* keys = origin.place.folder.keys.get();
  if (keys != nullptr && keys->encryption && prepared.workload.checkpoint.encryption_key.empty())
    messages.warning(
        error(ErrorKind::invalid, "'{}' is encrypted, and the checkpoints of this run will not be", origin.name)
            .hinted("checkpoint.encryption_key, as that run has it"));
  messages.message(fmt::format("begins from '{}' (resume.from)", origin.name));
}

// The step of the newest checkpoint in the run's folder; without one, of the checkpoint that the run began from.
std::int64_t newest_step(const std::string& folder, const Workload& workload) {
  const auto home = checkpoint_home(folder, workload.checkpoint, Absent::is_an_error);
  if (!home.ok()) return 0;
  const auto steps = checkpoint::list_steps(home->folder);
  if (steps.ok() && !steps->empty()) return steps->back();
  if (workload.resume.from.empty()) return 0;
  const auto origin = find_origin(workload, {});
  return origin.ok() ? origin->step() : 0;
}

// Refuses options that a run through XLA does not support. All its devices belong to this process.
Status check_xla_run(const RunArguments& arguments, const std::string& backend, std::int64_t ranks) {
  struct Refused {
    bool asked;
    const char* what;
    std::string hint;
  };
  const RankRange count = TRY(read_ranks(arguments.ranks.ranks));
  const Refused all[] = {
      {arguments.eager, "--eager: XLA does not run kernel by kernel", "--backend cpu, or leave --eager out"},
      {!arguments.chaos.empty(), "--chaos: its devices are of one process", "--backend cpu, whose ranks are processes"},
      {count.least != count.most, "--ranks A:B: its devices are of one process, and stay as many",
       fmt::format("--ranks {}", count.most)},
      {!arguments.ranks.rendezvous.empty() || arguments.ranks.local > 0, "ranks on several nodes",
       "leave --rendezvous and --local-ranks out: one process with all devices of this machine"},
      {arguments.inject.find("flip") != std::string::npos,
       "--inject flip: a step is one function there, and shows no gradients", "--backend cpu, or --inject nan"},
      {ranks > 1 && !arguments.inject.empty(), "--inject on several devices",
       "--inject on one device, or --backend cpu"},
  };
  for (const Refused& one : all) {
    if (one.asked) return error(ErrorKind::unsupported, "--device {}: {}", backend, one.what).hinted(one.hint);
  }
  return {};
}

// The edit of `mesh:` that gives it this many devices, in place of --ranks.
std::string mesh_of_ranks(const std::vector<std::pair<std::string, std::int64_t>>& mesh, std::int64_t ranks) {
  for (const char* rows : {"data", "fsdp"}) {
    const auto cuts_rows = std::ranges::find(mesh, rows, &std::pair<std::string, std::int64_t>::first);
    std::int64_t others = 1;
    for (const auto& [axis, size] : mesh) others *= axis == rows ? 1 : size;
    if (cuts_rows != mesh.end() && ranks % others == 0)
      return fmt::format("--set mesh.{}={} in place of --ranks, or leave --ranks out", rows, ranks / others);
  }
  return fmt::format("--set 'mesh={{data: {}}}' in place of --ranks, or leave --ranks out", ranks);
}

// A workload without a mesh gets one from the number of ranks.
Result<Workload> on_ranks(Workload workload, const RankRange& count, const RunArguments& arguments) {
  if (count.least != count.most && (!workload.mesh.empty() || arguments.in_process)) {
    return error(ErrorKind::invalid,
                 "--ranks {}: how many there are may change only where the workload has no mesh and "
                 "ranks are processes",
                 arguments.ranks.ranks)
        .hinted("--ranks with one number, or take mesh out");
  }
  if (workload.mesh.empty() && count.most > 1) workload.mesh = {{"data", count.most}};
  const std::int64_t ranks = workload.num_devices();
  if (count.said() &&
      (count.most != ranks || (!workload.mesh.empty() && count.least != ranks && count.most != ranks))) {
    return error(ErrorKind::invalid, "--ranks {}: the workload's mesh has {}", arguments.ranks.ranks,
                 counted(ranks, "device"))
        .hinted(mesh_of_ranks(workload.mesh, count.most));
  }
  if (ranks == 1) return workload;
  const char* alone = arguments.eager ? "--eager" : !arguments.lock.empty() ? "--locked" : nullptr;
  if (alone != nullptr) {
    return error(ErrorKind::unsupported, "{} is for one device, and there are {}", alone, ranks)
        .hinted(fmt::format("leave {} out, or the mesh", alone));
  }
  return for_ranks(workload);
}

// Applies what the run in the folder recorded when it began.
Status settle_what_was_begun(RequestedRun& run) {
  const std::string& folder = run.arguments.folder;
  const bool is_there = path_exists(folder + "/" + RunFiles::plan);
  RecordedInputs begun;  // for a run that goes on
  if (run.begins != ResumeMode::anew) begun = TRY(recorded_inputs(folder));
  run.preparing.has_begun = run.begins != ResumeMode::anew && is_there;
  if (!run.arguments.dry_run && !is_there) TRY(check_keys(run.workload, run.preparing.source));
  TRY(same_weights(begun, run.workload, folder));
  run.preparing.data.run = folder;
  run.preparing.data.begun = begun.dataset;
  return {};
}

// The ranks of this node share its memory. This process counts the maximum number of ranks; each rank counts the ranks
// of its generation.
void share_memory(RequestedRun& run) {
  const RankArguments& ranks = run.arguments.ranks;
  run.preparing.over_tcp = !ranks.rendezvous.empty() && ranks.local < run.ranks;
  run.of_node = limit_of(run.workload, run.preparing);
  const std::int64_t here = run.preparing.over_tcp && ranks.local > 0 ? ranks.local : run.ranks;
  if (run.ranks > 1 && (!run.xla || run.preparing.backend == "xla-cpu")) run.preparing.sharers = here;
}

}  // namespace

Status enter_environment(const Workload& asked, bool dry_run) {
  for (const auto& [name, value] : asked.env) ::setenv(name.c_str(), value.c_str(), 1);
  if (dry_run) return {};
  keep_to_owner(asked);
  for (const auto& [name, value] : TRY(read_secrets(asked))) ::setenv(name.c_str(), value.c_str(), 1);
  return {};
}

Result<RequestedRun> settle_run(const Workload& asked, PrepareOptions preparing, const RunArguments& arguments,
                                ResumeMode begins) {
  RequestedRun run{.asked = asked, .arguments = arguments, .preparing = std::move(preparing), .begins = begins};
  run.count = TRY(read_ranks(arguments.ranks.ranks));
  run.workload = TRY(on_ranks(asked, run.count, arguments));
  run.ranks = run.workload.num_devices();
  run.machines = machines_of(arguments.ranks, run.ranks);
  const Plan* plan = arguments.plan ? &*arguments.plan : nullptr;
  run.budget_buys = TRY(budget_of(asked, plan, run.machines, arguments.budget));
  run.xla = is_xla(run.preparing.backend);
  if (run.xla) TRY(check_xla_run(arguments, run.preparing.backend, run.ranks));
  TRY(settle_what_was_begun(run));
  share_memory(run);
  if (plan != nullptr) TRY(room_for(*plan, run.of_node, run.preparing.backend));
  return run;
}

void warn_of(const RequestedRun& run, const PlannedRun& prepared, const RunMessages& messages) {
  if (prepared.machine.stale) messages.warning(*prepared.machine.stale);
  if (run.workload.ranks.tls && run.preparing.over_tcp && run.ranks > 1 && !prepared.machine.tls_link)
    messages.warning(error(ErrorKind::not_found, "ranks.tls: its cost is not in the estimate: it was not measured here")
                         .hinted("systole calibrate"));
  if (const auto cut = prepared.data.cut_pairs()) messages.warning(*cut);
  if (const std::string cache = told_cache(prepared.data); !cache.empty())
    messages.message("objects of data: " + cache);
  if (const auto damaged = damaged_objects(prepared.data, run.workload)) messages.warning(*damaged);
  if (const auto cache = cache_warning(run.workload)) messages.warning(*cache);
  if (prepared.weights && prepared.weights->head_is_embedding) {
    messages.warning(error(
        ErrorKind::invalid,
        "the head of '{}' is its embedding, unscaled; here it begins as a copy of it, and the two are trained apart",
        prepared.weights->path));
  }
  tell_origin(prepared, messages);
  if (const auto idle = idle_axes(prepared)) messages.warning(*idle);
  if (const auto ragged = empty_rows(prepared.workload))
    messages.warning(error(ErrorKind::invalid, "{}: {}", ragged->key, ragged->text).hinted(ragged->hint));
}

Status check_prepared(const RequestedRun& run, const PlannedRun& prepared, const RunMessages& messages) {
  const RunArguments& arguments = run.arguments;
  TRY(check_injections(arguments.inject, {run.workload, *prepared.job.program, run.ranks, arguments.in_process}));
  if (!arguments.plan) return {};
  const std::optional<std::string> elsewhere = TRY(hold_to_plan(*arguments.plan, prepared.plan));
  if (elsewhere) messages.message(*elsewhere);
  return {};
}

Result<std::optional<Node>> lock_of_run(const RequestedRun& run, PlannedRun& prepared) {
  const bool is_kept = run.begins != ResumeMode::where_it_was && !run.arguments.dry_run;
  if (!run.held() && !is_kept) return std::optional<Node>();
  Node lock = TRY(lock_of(prepared));
  if (run.held()) TRY(hold_to_lock(prepared, lock, run.arguments.lock));
  return std::optional<Node>(std::move(lock));
}

std::int64_t step_begun_from(const RequestedRun& run, const PlannedRun& prepared) {
  if (prepared.origin) return prepared.origin->step();
  return run.begins == ResumeMode::anew ? 0 : newest_step(run.arguments.folder, run.workload);
}

}  // namespace systole
