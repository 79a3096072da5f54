#include "operate/run/begun_state.h"

#include <algorithm>
#include <array>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/restore_parts.h"
#include "execute/runtime/initialize.h"
#include "execute/train/least_of.h"
#include "execute/train/state.h"
#include "ground/base/errors.h"
#include "ground/base/shell_quoted.h"
#include "operate/observe/run_files.h"
#include "operate/run/job_lock.h"
#include "operate/run/origin.h"
#include "operate/run/run_numerics.h"
#include "operate/run/run_places.h"
#include "operate/run/run_weights.h"
#include "operate/run/train_run.h"
#include "operate/run/xla_machine.h"

namespace systole {
namespace {

Status check_numbers(const checkpoint::Manifest& from, const Job& job, const std::string& folder) {
  const checkpoint::Identity& identity = from.identity;
  if (identity.model_hash != parameters_hash(*job.model)) {
    return error(ErrorKind::invalid,
                 "the checkpoint of step {} is of another model ({}): names, shapes or types of its tensors differ",
                 from.step, identity.model)
        .hinted("'systole ckpt show' lists its tensors; take the workload that it was made with");
  }
  if (identity.workload_hash != numbers_hash(job.workload)) {
    return error(ErrorKind::invalid,
                 "the checkpoint of step {} was trained by a workload with other numbers (model, data or train)",
                 from.step)
        .hinted(
            fmt::format("leave those keys as they were, or begin a new run with them: systole run {} --set KEY=VALUE",
                        shell_word(folder + "/workload.yaml")));
  }
  return {};
}

Status check_identity(const checkpoint::Checkpoint& from, const Job& job, const Device& device,
                      const std::string& numerics, const std::string& folder) {
  const bool exact = job.workload.train.exact;
  TRY(check_numbers(from.manifest(), job, folder));
  TRY(check_numerics(from.manifest(), job.workload, numerics, CheckpointUse::resume));
  return exact ? check_executables(from.manifest().extra.find("executables"), device) : Status();
}

// Broadcasts rank 0's text; each rank passes its own. REQUIRES: up to 500 characters.
Result<std::string> said_by_first(const std::string& own, Communicator& ranks) {
  std::array<char, 512> text{};
  own.copy(text.data(), text.size() - 1);
  TRY(ranks.broadcast(std::as_writable_bytes(std::span(text)), 0));
  return std::string(text.data());
}

// Checks that all ranks begin from the same bytes. Each hashes its own folder, which may differ on another host.
Status weights_of_all(HfFolder& weights, const RankRole& role) {
  if (role.communicator == nullptr) return {};
  const std::string own = TRY(weights.hash());
  const std::string first = TRY(said_by_first(own, *role.communicator));
  if (own == first) return {};
  return error(ErrorKind::invalid, "rank {}: the weights in '{}' hash to {}, those of rank 0 to {}", role.rank,
               weights.path, own, first)
      .hinted(fmt::format("copy the {} of rank 0's host to this one", is_gguf(weights.path) ? "file" : "folder"));
}

// Initializes parameters from the seed, then overwrites them from model.weights. A run killed before its first
// checkpoint begins so again, from the same bytes.
Status begin_parameters(PlannedRun& p, Store& run, const std::string& folder, const RankRole& role) {
  TRY(initialize(*p.executor, static_cast<std::uint64_t>(p.workload.train.seed), role.rank));
  if (p.workload.model.weights.empty()) return {};
  if (!p.weights) p.weights = TRY(open_hf_folder(p.workload.model.weights, p.workload.model));
  if (role.first()) {
    if (const std::optional<InitialWeights> kept = TRY(initial_weights(run))) {
      if (const std::string now = TRY(p.weights->hash()); now != kept->hash) {
        return error(ErrorKind::invalid, "the weights in '{}' hash to {}, and the run was begun with {}",
                     p.weights->path, now, kept->hash)
            .hinted(begin_anew(is_gguf(p.weights->path) ? "the file" : "the folder", folder));
      }
    } else {
      TRY(store_initial_weights(run, *p.weights));
    }
  }
  TRY(weights_of_all(*p.weights, role));
  return load_weights(*p.executor, *p.weights, role.rank);
}

// The newest checkpoint that all ranks can restore: rank 0 proposes, newest first, and each rank reports whether it
// could. `only`: accept no other step.
Result<checkpoint::Restored> newest_for_all(const checkpoint::Folder& checkpoints, const RankRole& role,
                                            const Mesh& mesh,
                                            const std::function<Status(const checkpoint::Checkpoint&)>& take,
                                            std::optional<std::int64_t> only = {}) {
  Communicator* group = role.communicator;
  if (group == nullptr && only) {
    checkpoint::Checkpoint opened = TRY(checkpoint::open_step(checkpoints, *only, checkpoint::Verify::lengths));
    TRY(take(opened));
    return checkpoint::Restored{std::move(opened), {}};
  }
  if (group == nullptr) return checkpoint::restore_newest(checkpoints, take);
  std::vector<std::int64_t> steps{only.value_or(0)};
  if (!only) steps = TRY(checkpoint::list_steps(checkpoints));
  std::sort(steps.begin(), steps.end(), std::greater<>());
  std::vector<checkpoint::Rejected> rejected;
  bool proposed = false;
  for (std::size_t next = 0;; ++next) {
    std::int64_t step = next < steps.size() ? steps[next] : -1;
    TRY(group->broadcast(std::as_writable_bytes(std::span(&step, 1)), 0));
    if (step < 0) break;
    proposed = true;
    Result<checkpoint::Checkpoint> opened = checkpoint::open_step(checkpoints, step);
    const Status taken = opened.ok() ? take(*opened) : Status(opened.error());
    if (TRY(least_of(taken.ok() ? 1 : 0, *group, mesh)) == 1)
      return checkpoint::Restored{std::move(*opened), std::move(rejected)};
    if (!taken.ok()) {
      const ErrorKind kind = taken.error().kind;
      if (kind != ErrorKind::corrupt && kind != ErrorKind::io && kind != ErrorKind::not_found) return taken.error();
      rejected.push_back({step, checkpoints.manifest(step), taken.error()});
    }
  }
  if (!proposed) return error(ErrorKind::not_found, "there is no checkpoint");
  if (rejected.empty())
    return error(ErrorKind::interrupted, "other ranks cannot read the checkpoint{} that this one can",
                 only ? fmt::format(" of step {}", *only) : std::string("s"));
  Error none = std::move(rejected.front().reason);
  if (none.kind == ErrorKind::not_found) none.kind = ErrorKind::corrupt;  // a file of an existing checkpoint is missing
  return none;
}

// Begins from the checkpoint of another run, until this run has one of its own.
Result<TrainState> begin_from_origin(PlannedRun& p, Store& run, const std::string& path, const RankRole& role,
                                     const std::function<Status(const checkpoint::Checkpoint&)>& take) {
  const Origin origin = TRY(find_origin(p.workload, {}));
  if (!p.workload.model.weights.empty()) TRY(begin_parameters(p, run, path, role));  // to export in their layout
  Result<checkpoint::Restored> restored =
      newest_for_all(origin.place.folder, role, p.job.program->mesh, take, origin.step());
  if (!restored.ok()) return told_in(origin.place, std::move(restored).error());
  return state_from(restored->checkpoint.manifest().extra);
}

// Restores the newest checkpoint of the run; nothing if it has none.
Result<std::optional<TrainState>> restore_newest(PlannedRun& p, const RunFolder& folder, const CheckpointHome& home,
                                                 const RunRequest& request,
                                                 const std::function<Status(const checkpoint::Checkpoint&)>& take) {
  Result<checkpoint::Restored> newest = newest_for_all(home.folder, request.role, p.job.program->mesh, take);
  if (newest.ok()) {
    for (const checkpoint::Rejected& rejected : newest->rejected)
      if (request.passed_over) request.passed_over(passed_over(rejected, home.root, folder.path));
    return std::optional(TRY(state_from(newest->checkpoint.manifest().extra)));
  }
  if (newest.error().kind == ErrorKind::not_found) return std::optional<TrainState>();
  Error none = std::move(newest).error();
  if (none.hint.empty()) {
    none.hint = fmt::format("`systole ckpt verify {}` says what is damaged; copy it back, or begin a new run",
                            shell_word(folder.path));
  }
  return below(home.root, std::move(none));
}

}  // namespace

Status check_goes_on(const PlannedRun& prepared, const RunFolder& run) {
  const CheckpointHome home = TRY(open_home(run.path, prepared.workload.checkpoint));
  const std::vector<std::int64_t> steps = TRY(checkpoint::list_steps(home.folder));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (const auto manifest = checkpoint::load_manifest(home.folder, *step); manifest.ok())
      return check_numbers(*manifest, prepared.job, run.path);
  if (!steps.empty() || prepared.workload.resume.from.empty()) return {};
  const Origin origin = TRY(find_origin(prepared.workload, {}));
  return check_numbers(origin.checkpoint.manifest(), prepared.job, run.path);
}

// Checks that exact ranks compute the same bits, although they may be on machines of several kinds.
Status numerics_of_all(const std::string& own, const RankRole& role) {
  if (role.communicator == nullptr) return {};
  const std::string first = TRY(said_by_first(own, *role.communicator));
  if (own == first) return {};
  return error(ErrorKind::invalid, "rank {} computes by {}, rank 0 by {}: exact needs all to be the same", role.rank,
               own, first)
      .hinted("--pin-isa with instructions that all machines have, on each; or train.exact: false");
}

Result<TrainState> begin_state(PlannedRun& prepared, RunFolder& folder, const CheckpointHome& home,
                               const std::string& numerics, const RunRequest& request) {
  const RankRole& role = request.role;
  const auto take = [&](const checkpoint::Checkpoint& from) -> Status {
    TRY(check_identity(from, prepared.job, *prepared.machine.device, numerics, folder.path));
    return load_state(*prepared.executor, from, role.rank);
  };
  std::optional<TrainState> state;
  if (request.resume) state = TRY(restore_newest(prepared, folder, home, request, take));
  if (!state && !prepared.workload.resume.from.empty()) {
    state = TRY(begin_from_origin(prepared, *folder.store, folder.path, role, take));
  } else if (!state) {
    TRY(begin_parameters(prepared, *folder.store, folder.path, role));
    state.emplace();
  }
  if (request.resume && role.first() && request.documents)
    TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(prepared.workload)));
  return std::move(*state);
}

}  // namespace systole
