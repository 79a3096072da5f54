#include "operate/run/train_run.h"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "describe/program/memory.h"
#include "execute/train/state.h"
#include "ground/process/loaded_pages.h"
#include "ground/process/machine.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/data_told.h"
#include "operate/run/full_disk.h"
#include "operate/run/run_numerics.h"
#include "operate/run/run_places.h"
#include "operate/run/run_tokenizer.h"
#include "operate/run/xla_machine.h"

namespace systole {
namespace {

Result<std::unique_ptr<BatchSource>> training_source(const PlannedRun& p, const Node& cursor, const RunRequest& request,
                                                     Clock& clock) {
  const std::int64_t batch = p.workload.train.batch;
  switch (p.workload.data.kind) {
    case DataSpec::Kind::linear: return open_linear_source(p.workload, batch, false, true, cursor);
    case DataSpec::Kind::text: break;
  }
  RowReaderOptions options = training_rows(p);
  options.before_batch = request.before_batch;
  if (p.data.mixture) options.mixture = p.data.mixture->order;
  options.clock = &clock;
  return open_text_source(p.data.dataset->train, std::move(options), cursor);
}

// `rows`: of a mixture, in the order of a pass; else null.
std::function<Result<std::unique_ptr<BatchSource>>()> held_out_source(
    const PlannedRun& p, std::shared_ptr<const std::vector<std::int64_t>> rows) {
  if (p.job.evaluation_rows == 0) return nullptr;
  return [&p, rows = std::move(rows)]() -> Result<std::unique_ptr<BatchSource>> {
    switch (p.workload.data.kind) {
      case DataSpec::Kind::linear: return open_linear_source(p.workload, p.job.evaluation_rows, true, false, Node());
      case DataSpec::Kind::text: break;
    }
    RowReaderOptions options = row_options(p.workload, p.data.dataset->tokenizer, p.job.evaluation_rows, RowPass::once);
    options.once_rows = rows;
    return open_text_source(p.data.dataset->held_out, std::move(options), Node());
  };
}

// Resets the peak memory, so the measurement does not include what planning used and freed. A system that cannot reset
// the peak reports that of the whole process.
void begin_measuring_memory() {
  malloc_trim(0);
  let_go_of_loaded_pages();
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Time of the training step's kernels, by the classes of the plan's prediction.
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

void emit_begin(const PlannedRun& p, const RunFolder& folder, const RunRequest& request, const std::string& numerics,
                std::int64_t from_step, Clock& clock, EventSink& events) {
  Opened event;
  event.run = std::filesystem::path(folder.path).filename().string();
  event.at = clock.timestamp();
  event.rank = request.role.rank;
  event.process = getpid();
  event.host = host_name();
  event.command = request.command;
  event.program_hash = p.plan.program.hash;
  event.workload_hash = numbers_hash(p.workload);
  event.data_hash = p.data.dataset ? p.data.dataset->manifest.key : "";
  event.numerics = numerics;
  event.from_step = from_step;
  events.add(Event{Seconds(), std::move(event)});
  events.add(Event{Seconds(), Note{"info", kernels_text(*p.machine.device), "kernels", {}}});
  if (std::optional<Note> compiled = compile_note(*p.machine.device))
    events.add(Event{Seconds(), *std::move(compiled)});
  if (const std::string data = told_times(p.data); !data.empty())
    events.add(Event{Seconds(), Note{"info", "data: " + data, name_of(Category::startup), times_of(p.data).total()}});
}

MemoryMeasured memory_measured(const PlannedRun& p) {
  MemoryMeasured memory;
  std::int64_t high_water = 0;
  for (const WorkCounters& counters : p.executor->counters()) high_water = std::max(high_water, counters.high_water);
  memory.arena_high_water = Bytes(aligned(high_water, p.job.program->target.alignment));
  memory.by_owner["arena"] = memory.arena_high_water;
  if (p.data.dataset) memory.by_owner["dataset"] = p.data.resident();
  memory.resident = std::max(resident_memory(), peak_resident_memory());
  return memory;
}

// Work that the functions of the training step did in `steps`.
WorkCounted work_counted(const PlannedRun& p, std::int64_t steps) {
  WorkCounters counted;
  std::vector<bool> of_training(p.job.program->functions.size(), false);
  for (const Schedule& schedule : p.job.program->schedules) {
    if (!is_train_schedule(schedule.name)) continue;
    for (const Action& action : schedule.actions) of_training[static_cast<std::size_t>(action.function)] = true;
  }
  for (std::size_t f = 0; f < of_training.size(); ++f)
    if (of_training[f]) counted += p.executor->counters()[f];
  WorkCounted work;
  work.steps = steps;
  work.flops = Flops(counted.flops + counted.skipped_flops);
  work.moved = Bytes(counted.bytes_read + counted.bytes_written);
  work.sent = Bytes(counted.bytes_sent);
  work.compute_by_kind = time_by_kind(*p.executor, of_training);
  return work;
}

// The reader's stages, and the rest of the wait: copying rows to the device.
std::optional<std::vector<std::pair<std::string, Seconds>>> waits_of(const TrainOutcome& outcome, Seconds waited) {
  if (outcome.waits.empty()) return std::nullopt;
  std::vector<std::pair<std::string, Seconds>> stages;
  for (const auto& [stage, time] : outcome.waits) {
    if (time > Seconds()) stages.emplace_back(stage, time);
    waited = waited - time;
  }
  stages.emplace_back("copy", std::max(Seconds(), waited));
  return stages;
}

Stopped stopped_by(const Result<TrainOutcome>& outcome) {
  Stopped stopped;
  if (!outcome.ok()) {
    stopped.reason = "error";
    stopped.detail = to_string(outcome.error());
    return stopped;
  }
  stopped.reason = outcome->ending == Ending::finished  ? "finished"
                   : outcome->budget_used               ? "budget"
                   : outcome->ending == Ending::stopped ? "signal"
                                                        : "diverged";
  stopped.detail = outcome->detail;
  stopped.step = outcome->state.step;
  stopped.saved = outcome->saved;
  return stopped;
}

void emit_end(const PlannedRun& p, const Result<TrainOutcome>& outcome, TimeLedger& ledger, Clock& clock,
              Seconds opened, std::int64_t first_step, EventSink& events) {
  const auto emit = [&](EventBody body) { events.add(Event{clock.now() - opened, std::move(body)}); };
  // If the device has its own memory, this process's memory is not what was planned.
  if (p.machine.device->host_sees_memory()) emit(memory_measured(p));
  if (outcome.ok()) {
    WorkCounted work = work_counted(p, outcome->state.step - first_step);
    if (!outcome->steps_of_shapes.empty()) work.steps_by_length.emplace();
    for (std::size_t s = 0; s < outcome->steps_of_shapes.size(); ++s)
      work.steps_by_length->emplace_back(std::to_string(p.job.shapes[s].length), outcome->steps_of_shapes[s]);
    work.waits_by_stage = waits_of(*outcome, ledger.total()[Category::data_wait]);
    emit(std::move(work));
  }
  Stopped stopped = stopped_by(outcome);
  stopped.seconds = ledger.total();
  emit(std::move(stopped));
}

// Writes the run's documents before anything is started. A resumed run keeps its original plan, and its workload until
// the checkpoint is known to fit the new one.
Status write_documents(const PlannedRun& p, RunFolder& folder, const CheckpointHome& home, const RunRequest& request) {
  TRY(check_disk(p, home));
  TRY(checkpoint::prepare(home.folder));
  if (p.data.dataset) TRY(keep_tokenizer(*folder.store, folder.path, *p.data.dataset));
  if (request.resume || !request.documents) return {};
  TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(p.workload)));
  return write_whole(*folder.store, RunFiles::plan, to_json(p.plan));  // written last: its presence means that there is
                                                                       // a run
}

// Connects the device to the other ranks and to observers.
Status connect(PlannedRun& p, const RunRequest& request) {
  Device& device = *p.machine.device;
  Communicator* const communicator = request.role.communicator;
  device.connect(communicator);
  if (communicator != nullptr && request.collectives) {
    request.collectives->then = request.stages;
    communicator->observe(request.collectives.get());
  }
  if (request.observer == nullptr || device.observe(request.observer)) return {};
  return error(ErrorKind::unsupported, "{} does not run kernel by kernel", device.target().name)
      .hinted("--eager needs --backend cpu or reference");
}

Result<TrainerParts> parts_of(const PlannedRun& p, const checkpoint::Folder& checkpoints, const std::string& numerics,
                              const Node& cursor, const RunRequest& request, Clock& clock, EventSink& events) {
  TrainerParts parts;
  parts.clock = &clock;
  parts.events = &events;
  parts.checkpoints = checkpoints;
  parts.source = TRY(training_source(p, cursor, request, clock));
  std::shared_ptr<const std::vector<std::int64_t>> held_out_rows;
  if (p.data.mixture && p.job.evaluation_rows > 0) {
    Mixture::HeldOutPass pass = p.data.mixture->held_out_pass(p.job.evaluation_rows);
    held_out_rows = std::make_shared<const std::vector<std::int64_t>>(std::move(pass.rows));
    parts.held_out_batches = std::move(pass.sources);
    for (const MixtureOptions::Source& source : p.data.mixture->options.sources)
      parts.held_out_names.push_back(source.name);
  }
  parts.held_out = held_out_source(p, std::move(held_out_rows));
  parts.stop_requested = request.stop_requested;
  parts.vocabulary = p.job.model->vocabulary();
  parts.numerics = numerics;
  parts.isa = p.machine.isa;
  for (const auto& [function, hash] : p.machine.device->executables()) parts.executables.set(function, hash);
  parts.communicator = request.role.communicator;
  parts.device = request.role.rank;
  parts.save_group = request.role.group;
  parts.hooks = request.hooks;
  parts.stages = request.stages;
  parts.time_to_stop = request.time_to_stop;
  parts.budget = request.budget;
  return parts;
}

// Reports functions that were recompiled, after each step.
void watch_compiling(TrainHooks& hooks, CompileWatch& watch, Clock& clock, Seconds opened, EventSink& events) {
  hooks.in_logging = [&watch, &clock, opened, &events, then = std::move(hooks.in_logging)](std::int64_t step) {
    if (then) then(step);
    for (Note& note : watch.news()) events.add(Event{clock.now() - opened, std::move(note)});
  };
}

}  // namespace

// The list includes decompositions and reference kernels.
std::string kernels_text(const Device& device) {
  std::string text = "kernels";
  for (const std::string& line : device.kernels_used()) text += "\n  " + line;
  return text;
}

Result<TrainOutcome> run_job(PlannedRun& prepared, RunFolder& folder, const RunRequest& request, Clock& clock,
                             TimeLedger& ledger, EventSink& events) {
  TRY(fits(prepared));
  CheckpointHome home = TRY(open_home(folder.path, prepared.workload.checkpoint));
  if (request.disk != nullptr) home.folder.store = FullDisk::over(request.disk, std::move(home.folder.store));
  const checkpoint::Folder& checkpoints = home.folder;
  if (request.role.first()) TRY(write_documents(prepared, folder, home, request));
  begin_measuring_memory();
  TRY(connect(prepared, request));
  {
    const InCategory compiling(ledger, Category::compile);
    TRY(prepared.executor->start());
  }
  const std::string numerics = numerics_of(prepared.workload, prepared.machine);
  if (prepared.workload.train.exact) TRY(numerics_of_all(numerics, request.role));
  TrainState state;
  {
    const InCategory restoring(ledger, Category::restore);
    state = TRY(begin_state(prepared, folder, home, numerics, request));
  }
  if (request.stages != nullptr) request.stages->mark(FlightMark::restored);
  if (request.began) request.began(state);
  const Seconds opened = clock.now();
  ledger.record_into(request.ring, opened);
  emit_begin(prepared, folder, request, numerics, state.step, clock, events);

  TrainerParts parts = TRY(parts_of(prepared, checkpoints, numerics, state.cursor, request, clock, events));
  CompileWatch watch(*prepared.machine.device);
  watch_compiling(parts.hooks, watch, clock, opened, events);
  const std::int64_t first_step = state.step;
  Trainer trainer(prepared.job, *prepared.executor, std::move(parts), ledger, std::move(state));
  Result<TrainOutcome> outcome = trainer.run();
  ledger.record_into(nullptr, opened);
  emit_end(prepared, outcome, ledger, clock, opened, first_step, events);
  static_cast<void>(events.flush());  // the sink keeps a failure for its owner
  return outcome;
}

}  // namespace systole
