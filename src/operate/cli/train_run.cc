#include "operate/cli/train_run.h"

#include <malloc.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "describe/graph/memory.h"
#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/names.h"
#include "execute/checkpoint/restore_parts.h"
#include "execute/runtime/initialize.h"
#include "execute/train/least_of.h"
#include "execute/train/state.h"
#include "ground/process/loaded_pages.h"
#include "ground/process/machine.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/full_disk.h"
#include "operate/cli/job_lock.h"
#include "operate/cli/origin.h"
#include "operate/cli/run_places.h"
#include "operate/cli/run_tokenizer.h"
#include "operate/cli/xla_machine.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

// Everything that the bits of a run depend on besides its inputs: the instructions of our kernels and of oneDNN's, its
// version; of an exact run the logical shards, of another the number of threads.
std::string exact_numerics(const Workload& workload, const std::string& of_machine) {
  return fmt::format("{}, exact over {} logical shards", of_machine, workload.train.logical_shards);
}
std::string numerics_of(const Workload& workload, const Machine& machine) {
  return workload.train.exact ? exact_numerics(workload, machine.numerics) : machine.device->target().name;
}

// How a run that another machine began goes on, where this one could compute as that one did. `option`: that says so.
std::string way_on(const Workload& workload, const checkpoint::Manifest& manifest, const std::string& before,
                   const std::string& option) {
  const Node* isa = manifest.extra.find("isa");
  const auto pinned = isa != nullptr ? numerics_pinned_to(isa->text()) : std::nullopt;
  const bool helps = pinned && before == exact_numerics(workload, *pinned);
  return fmt::format(
      "go on where it began, {}or with --set train.exact=false: from the same bytes, but other roundings",
      helps ? fmt::format("with {}, which computes by {} here too, ", option, isa->text()) : "");
}

enum class Goes { on, from_another };

Status check_numerics(const checkpoint::Manifest& from, const Workload& workload, const std::string& numerics,
                      Goes goes) {
  const Node* before = from.extra.find("numerics");
  if (!workload.train.exact || before == nullptr || before->text() == numerics) return {};
  const Node* isa = from.extra.find("isa");
  const std::string option =
      goes == Goes::on || isa == nullptr ? "--pin-isa" : fmt::format("--pin-isa {}", isa->text());
  return error(ErrorKind::invalid, "exactness ends here: the run was computed by {}, this is {}", before->text(),
               numerics)
      .hinted(way_on(workload, from, before->text(), option));
}

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
  TRY(check_numerics(from.manifest(), job.workload, numerics, Goes::on));
  return exact ? check_executables(from.manifest().extra.find("executables"), device) : Status();
}

Result<std::unique_ptr<BatchSource>> training_source(const Prepared& p, const Node& cursor, const RunRequest& request,
                                                     Clock& clock) {
  if (p.workload.data.kind == DataSpec::Kind::linear)
    return open_linear_source(p.workload, p.workload.train.batch, false, true, cursor);
  RowReaderOptions options =
      row_options(p.workload, p.data.dataset->tokenizer, p.workload.train.batch, RowPass::endless, clock);
  options.before_batch = request.before_batch;
  return open_text_source(p.data.dataset->train, std::move(options), cursor);
}

std::function<Result<std::unique_ptr<BatchSource>>()> held_out_source(const Prepared& p, Clock& clock) {
  if (p.job.evaluation_rows == 0) return nullptr;
  return [&p, &clock]() -> Result<std::unique_ptr<BatchSource>> {
    if (p.workload.data.kind == DataSpec::Kind::linear)
      return open_linear_source(p.workload, p.job.evaluation_rows, true, false, Node());
    return open_text_source(
        p.data.dataset->held_out,
        row_options(p.workload, p.data.dataset->tokenizer, p.job.evaluation_rows, RowPass::once, clock), Node());
  };
}

// What is measured is the run's: the peak counts from here, without what planning took and gave back. A system that
// does not take the peak back reports that of the whole process.
void begin_measuring_memory() {
  malloc_trim(0);
  let_go_of_loaded_pages();
  std::ofstream("/proc/self/clear_refs") << "5";
}

// What the kernels of the training step took, by the classes that the plan's prediction has.
std::vector<std::pair<std::string, Seconds>> time_by_kind(const Executor& executor,
                                                          const std::vector<bool>& of_training) {
  TimeByClass times;
  for (std::size_t f = 0; f < of_training.size(); ++f) {
    if (!of_training[f]) continue;
    for (const OpTime& op : executor.op_times(static_cast<int>(f))) times[class_of(op_named(op.op))] += op.time;
  }
  std::vector<std::pair<std::string, Seconds>> kinds;
  for (int c = 0; c < kNumOpClasses; ++c) {
    const auto op_class = static_cast<OpClass>(c);
    if (times[op_class] > Seconds()) kinds.emplace_back(name_of(op_class), times[op_class]);
  }
  return kinds;
}

// What rank 0 says, where each rank says something of its own. REQUIRES: up to 500 characters.
Result<std::string> said_by_first(const std::string& own, Communicator& ranks) {
  std::array<char, 512> text{};
  own.copy(text.data(), text.size() - 1);
  TRY(ranks.broadcast(std::as_writable_bytes(std::span(text)), 0));
  return std::string(text.data());
}

// That exact ranks, which may be on machines of several kinds, add up the same bits.
Status numerics_of_all(const std::string& own, const RankRole& role) {
  if (role.communicator == nullptr) return {};
  const std::string first = TRY(said_by_first(own, *role.communicator));
  if (own == first) return {};
  return error(ErrorKind::invalid, "rank {} computes by {}, rank 0 by {}: exact needs all to be the same", role.rank,
               own, first)
      .hinted("--pin-isa with instructions that all machines have, on each; or train.exact: false");
}

// That all ranks begin from the same bytes: each hashes its own folder, which on another host may be another.
Status weights_of_all(HfFolder& weights, const RankRole& role) {
  if (role.communicator == nullptr) return {};
  const std::string own = TRY(weights.hash());
  const std::string first = TRY(said_by_first(own, *role.communicator));
  if (own == first) return {};
  return error(ErrorKind::invalid, "rank {}: the weights in '{}' hash to {}, those of rank 0 to {}", role.rank,
               weights.path, own, first)
      .hinted("copy the folder of rank 0's host to this one");
}

// From the seed, and over that from model.weights. A run that was killed before its first checkpoint begins so again,
// and from the same bytes.
Status begin_parameters(Prepared& p, Store& run, const std::string& folder, const RankRole& role) {
  TRY(initialize(*p.executor, static_cast<std::uint64_t>(p.workload.train.seed), role.rank));
  if (p.workload.model.weights.empty()) return {};
  if (!p.weights) p.weights = TRY(open_hf_folder(p.workload.model.weights, p.workload.model));
  if (role.first()) {
    if (const std::optional<KeptWeights> kept = TRY(kept_weights(run))) {
      if (const std::string now = TRY(p.weights->hash()); now != kept->hash) {
        return error(ErrorKind::invalid, "the weights in '{}' hash to {}, and the run was begun with {}",
                     p.weights->path, now, kept->hash)
            .hinted(begin_anew("the folder", folder));
      }
    } else {
      TRY(keep_weights(run, *p.weights));
    }
  }
  TRY(weights_of_all(*p.weights, role));
  return load_weights(*p.executor, *p.weights, role.rank);
}

// The newest checkpoint that all ranks can restore: rank 0 proposes, newest first, and each says whether it could.
// `only`: no other step will do.
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
  if (none.kind == ErrorKind::not_found) none.kind = ErrorKind::corrupt;  // a file of one that is there
  return none;
}

// What the run began with, where it is not yet in a checkpoint of its own: the state of another run's.
Result<TrainState> begin_from_origin(Prepared& p, Store& run, const std::string& path, const RankRole& role,
                                     const std::function<Status(const checkpoint::Checkpoint&)>& take) {
  const Origin origin = TRY(find_origin(p.workload, {}));
  if (!p.workload.model.weights.empty()) TRY(begin_parameters(p, run, path, role));  // to export in their form
  Result<checkpoint::Restored> restored =
      newest_for_all(origin.place.folder, role, p.job.program->mesh, take, origin.step());
  if (!restored.ok()) return told_in(origin.place, std::move(restored).error());
  return state_from(restored->checkpoint.manifest().extra);
}

void emit_end(Prepared& p, const Result<TrainOutcome>& outcome, TimeLedger& ledger, Clock& clock, Seconds opened,
              std::int64_t first_step, EventSink& events) {
  const auto emit = [&](EventBody body) { events.add(Event{clock.now() - opened, std::move(body)}); };
  const bool own_memory =
      !p.machine.device->host_sees_memory();  // what this process holds is then not what was planned
  MemoryMeasured memory;
  std::int64_t high_water = 0;
  for (const WorkCounters& counters : p.executor->counters()) high_water = std::max(high_water, counters.high_water);
  memory.arena_high_water = Bytes(aligned(high_water, p.job.program->target.alignment));
  memory.by_owner["arena"] = memory.arena_high_water;
  if (p.data.dataset) memory.by_owner["dataset"] = p.data.resident();
  memory.resident = std::max(resident_memory(), peak_resident_memory());
  if (!own_memory) emit(std::move(memory));
  WorkCounted work;
  const Schedule& train = p.job.program->schedule_named("train");
  WorkCounters counted;
  std::vector<bool> of_training(p.job.program->functions.size(), false);
  for (const Action& action : train.actions) of_training[static_cast<std::size_t>(action.function)] = true;
  for (std::size_t f = 0; f < of_training.size(); ++f) {
    if (of_training[f]) counted += p.executor->counters()[f];
  }
  work.steps = outcome.ok() ? outcome->state.step - first_step : 0;
  work.flops = Flops(counted.flops + counted.skipped_flops);
  work.moved = Bytes(counted.bytes_read + counted.bytes_written);
  work.sent = Bytes(counted.bytes_sent);
  work.compute_by_kind = time_by_kind(*p.executor, of_training);
  if (outcome.ok()) emit(work);
  Stopped stopped;
  if (outcome.ok()) {
    stopped.reason = outcome->ending == Ending::finished  ? "finished"
                     : outcome->budget_used               ? "budget"
                     : outcome->ending == Ending::stopped ? "signal"
                                                          : "diverged";
    stopped.detail = outcome->detail;
    stopped.step = outcome->state.step;
    stopped.saved = outcome->saved;
  } else {
    stopped.reason = "error";
    stopped.detail = to_string(outcome.error());
  }
  stopped.seconds = ledger.total();
  emit(std::move(stopped));
}

}  // namespace

Status check_goes_on(const Prepared& prepared, const RunFolder& run) {
  const CheckpointHome home =
      TRY(checkpoint_home(*run.store, run.path, prepared.workload.checkpoint, Absent::is_an_error));
  const checkpoint::Folder folder{home.store, home.dir, TRY(keys_of(prepared.workload.checkpoint, home))};
  const std::vector<std::int64_t> steps = TRY(checkpoint::list_steps(folder));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (const auto manifest = checkpoint::load_manifest(folder, *step); manifest.ok())
      return check_numbers(*manifest, prepared.job, run.path);
  if (!steps.empty() || prepared.workload.resume.from.empty()) return {};
  const Origin origin = TRY(find_origin(prepared.workload, {}));
  return check_numbers(origin.checkpoint.manifest(), prepared.job, run.path);
}

Status computes_alike(const checkpoint::Manifest& from, const Prepared& prepared) {
  return check_numerics(from, prepared.workload, numerics_of(prepared.workload, prepared.machine), Goes::from_another);
}

// A decomposition or a reference kernel that serves an op is among them.
std::string kernels_text(const Device& device) {
  std::string text = "kernels";
  for (const std::string& line : device.kernels_used()) text += "\n  " + line;
  return text;
}

Result<TrainOutcome> run_job(Prepared& prepared, RunFolder& folder, const RunRequest& request, Clock& clock,
                             TimeLedger& ledger, EventSink& events) {
  TRY(fits(prepared));
  const CheckpointHome home =
      TRY(checkpoint_home(*folder.store, folder.path, prepared.workload.checkpoint, Absent::is_an_error));
  Store& saves_to = request.disk != nullptr ? request.disk->over(*home.store) : *home.store;
  const checkpoint::Folder checkpoints{&saves_to, home.dir, TRY(keys_of(prepared.workload.checkpoint, home))};
  const RankRole& role = request.role;
  if (role.first()) TRY(check_disk(prepared, folder));
  if (role.first()) TRY(checkpoint::prepare(checkpoints));
  if (role.first() && prepared.data.dataset) TRY(keep_tokenizer(*folder.store, folder.path, *prepared.data.dataset));
  // A resumed run keeps the plan that it was begun with, and its workload until the checkpoint is known to fit the new
  // one.
  const bool writes = role.first() && request.documents;
  if (!request.resume && writes) {
    TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(prepared.workload)));
    TRY(write_whole(*folder.store, RunFiles::plan, to_json(prepared.plan)));  // the last: by it there is a run
  }
  begin_measuring_memory();
  prepared.machine.device->connect(role.communicator);
  if (role.communicator != nullptr && request.collectives) {
    request.collectives->then = request.stages;
    role.communicator->observe(request.collectives.get());
  }
  if (request.observer != nullptr && !prepared.machine.device->observe(request.observer)) {
    return error(ErrorKind::unsupported, "{} does not run kernel by kernel", prepared.machine.device->target().name)
        .hinted("--eager needs --backend cpu or reference");
  }
  {
    const InCategory compiling(ledger, Category::compile);
    TRY(prepared.executor->start());
  }
  const std::string numerics = numerics_of(prepared.workload, prepared.machine);
  if (prepared.workload.train.exact) TRY(numerics_of_all(numerics, role));
  TrainState state;
  bool restored = false;
  {
    const InCategory restoring(ledger, Category::restore);
    const auto take = [&](const checkpoint::Checkpoint& from) -> Status {
      TRY(check_identity(from, prepared.job, *prepared.machine.device, numerics, folder.path));
      return load_state(*prepared.executor, from, role.rank);
    };
    if (request.resume) {
      Result<checkpoint::Restored> newest = newest_for_all(checkpoints, role, prepared.job.program->mesh, take);
      if (newest.ok()) {
        for (const checkpoint::Rejected& rejected : newest->rejected) {
          if (request.rejected) request.rejected(rejected);
        }
        if (writes) TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(prepared.workload)));
        state = TRY(state_from(newest->checkpoint.manifest().extra));
        restored = true;
      } else if (newest.error().kind != ErrorKind::not_found) {
        Error none = std::move(newest).error();
        if (none.hint.empty()) {
          none.hint = fmt::format("`systole ckpt verify {}` says what is damaged; copy it back, or begin a new run",
                                  folder.path);
        }
        return below(home.root, std::move(none));
      }
    }
    if (!restored && !prepared.workload.resume.from.empty())
      state = TRY(begin_from_origin(prepared, *folder.store, folder.path, role, take));
    else if (!restored)
      TRY(begin_parameters(prepared, *folder.store, folder.path, role));
    if (request.resume && !restored && writes)
      TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(prepared.workload)));
  }
  if (request.stages != nullptr) request.stages->mark(FlightMark::restored);
  if (request.began) request.began(state);
  const Seconds opened = clock.now();
  ledger.record_into(request.ring, opened);
  Opened event;
  event.run = std::filesystem::path(folder.path).filename().string();
  event.at = clock.timestamp();
  event.rank = role.rank;
  event.process = getpid();
  event.host = host_name();
  event.command = request.command;
  event.program_hash = prepared.plan.program.hash;
  event.workload_hash = numbers_hash(prepared.workload);
  event.data_hash = prepared.data.dataset ? prepared.data.dataset->manifest.key : "";
  event.numerics = numerics;
  event.from_step = state.step;
  events.add(Event{Seconds(), std::move(event)});
  events.add(Event{Seconds(), Note{"info", kernels_text(*prepared.machine.device), "kernels", {}}});
  if (std::optional<Note> compiled = compile_note(*prepared.machine.device))
    events.add(Event{Seconds(), *std::move(compiled)});

  TrainerParts parts;
  parts.clock = &clock;
  parts.events = &events;
  parts.checkpoints = checkpoints;
  parts.source = TRY(training_source(prepared, state.cursor, request, clock));
  parts.held_out = held_out_source(prepared, clock);
  parts.stop_requested = request.stop_requested;
  parts.vocabulary = prepared.job.model->vocabulary();
  parts.numerics = numerics;
  parts.isa = prepared.machine.isa;
  for (const auto& [function, hash] : prepared.machine.device->executables()) parts.executables.set(function, hash);
  parts.communicator = role.communicator;
  parts.device = role.rank;
  parts.save_group = role.group;
  parts.hooks = request.hooks;
  CompileWatch watch(*prepared.machine.device);
  parts.hooks.in_logging = [&, then = std::move(parts.hooks.in_logging)](std::int64_t step) {
    if (then) then(step);
    for (Note& note : watch.news()) events.add(Event{clock.now() - opened, std::move(note)});
  };
  parts.stages = request.stages;
  parts.time_to_stop = request.time_to_stop;
  parts.budget = request.budget;
  const std::int64_t first_step = state.step;
  Trainer trainer(prepared.job, *prepared.executor, std::move(parts), ledger, std::move(state));
  Result<TrainOutcome> outcome = trainer.run();
  ledger.record_into(nullptr, opened);
  emit_end(prepared, outcome, ledger, clock, opened, first_step, events);
  static_cast<void>(events.flush());  // it keeps what failed, for whoever owns it to ask
  return outcome;
}

}  // namespace systole::cli
