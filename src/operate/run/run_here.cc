#include "operate/run/run_here.h"

#include "execute/checkpoint/compare.h"
#include "execute/runtime/eager.h"
#include "ground/base/errors.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/data_told.h"
#include "operate/run/inject.h"
#include "operate/run/metrics_server.h"
#include "operate/run/probes.h"
#include "operate/run/rank_threads.h"
#include "operate/run/run_end.h"
#include "operate/run/stop_watch.h"
#include "operate/run/xla_machine.h"
#include "predict/perf/predicted_peak.h"

namespace systole {
namespace {

// Hash of all tensors of the last saved state.
Result<std::string> result_hash(const PlannedRun& prepared, const RunFolder& folder, std::int64_t step) {
  const CheckpointHome home = TRY(open_home(folder.path, prepared.workload.checkpoint));
  return checkpoint::state_hash(TRY(checkpoint::open_step(home.folder, step)));
}

// Holds about the last 100 steps of the process: 48 KiB.
Result<std::unique_ptr<Ring>> open_spans(const RunFolder& folder, const std::string& event_file) {
  constexpr std::int64_t kSpans = 1024;
  TRY(make_dirs_synced(*folder.store, RunFiles::spans));
  const std::string file = span_file_of(event_file);
  if (TRY(folder.store->exists(file)))
    TRY(folder.store->remove(file));  // left by a run that was refused before its first event
  return Ring::create(folder.path + "/" + file, kSpans);
}

// The trainer's request, without probes and fault injection.
RunRequest request_of(const HereRun& run, RunStopWatch& stop, const RunViewers& viewers, const RunScene& scene) {
  RunRequest request;
  const bool goes_on = run.claim.goes_on();
  const RunMessages& messages = scene.messages;
  if (run.claim.budget() != nullptr) request.budget = run.claim.budget()->of_trainer();
  request.folder = run.claim.folder().path;
  request.resume = goes_on;
  request.command = scene.command_line;
  request.executor = run.prepared.executor.get();
  request.stop_requested = [&stop] { return stop.requested(); };
  request.time_to_stop = [&stop] { return stop.left(); };
  request.passed_over = messages.warning;
  request.hooks.on_stop = [&messages](std::int64_t step) { messages.message(stopping_text(step)); };
  request.began = [&messages, &viewers, &device = *run.prepared.machine.device, goes_on](const TrainState& state) {
    messages.message(kernels_text(device));
    viewers.began(state);
    if (goes_on) messages.message(goes_on_text(state.step));
  };
  return request;
}

// Lists every value of the first step.
void look_at_every_value(EagerCheck& eager, RunRequest& request) {
  request.observer = &eager;
  request.hooks.on_action = [&eager](std::int64_t step, const Action& action, const Function& function) {
    eager.enter(step, action, function);
  };
}

void tell_what_begins(const HereRun& run, const HttpServer* served, const RunMessages& messages) {
  const PlannedRun& prepared = run.prepared;
  if (served != nullptr) messages.message(fmt::format("metrics: http://{}/metrics", to_string(served->address())));
  messages.notice(fmt::format("{}: {} on {}, {} planned", run.asked.workload.name, run.claim.folder().path,
                              prepared.plan.target.name, to_string(prepared.memory.total())));
  if (!run.asked.xla) return;
  const auto peak = predicted_peak_text(run.asked.preparing.backend, prepared.machine.catalog_entry,
                                        *prepared.job.program, temporaries_of(*prepared.machine.device));
  if (peak) messages.message(*peak);
}

// Claims the folder; from then on a signal requests a save.
Status take_here(const HereRun& run) {
  TRY(run.claim.take());
  run.signals.hold();
  return run.claim.begin_budget();
}

Result<TrainOutcome> train(const HereRun& run, const RunRequest& request, Clock& clock, EventFile& events) {
  RunFolder& folder = run.claim.folder();
  return caught([&] {
    if (run.prepared.job.program->mesh.trivial())
      return run_job(run.prepared, folder, request, clock, run.ledger, events);
    return run_in_threads(run.prepared, run.asked.preparing, folder, request, clock, run.ledger, events);
  });
}

}  // namespace

Result<HereOutcome> run_here(const HereRun& run, const RunViewers& viewers, const RunScene& scene) {
  const Workload& workload = run.asked.workload;
  const RunArguments& arguments = run.asked.arguments;
  const RunMessages& messages = scene.messages;
  if (!arguments.chaos.empty())
    return error(ErrorKind::invalid, "--chaos is for ranks that are processes, and here is one").hinted("--ranks 2");
  RunMetrics metrics;
  if (const auto cache = cache_of(run.prepared.data))
    metrics.see_cache(cache->in_memory + cache->on_disk, cache->fetched, cache->fetched_bytes, cache->damaged);
  const std::unique_ptr<HttpServer> served = TRY(serve_metrics(arguments.metrics, metrics));
  TRY(take_here(run));
  RunFolder& folder = run.claim.folder();
  RunStopWatch stop(run.signals, run.preemption, scene.clock, workload.ranks.notice.value_or(RanksSpec::kNotice));
  RunRequest request = request_of(run, stop, viewers, scene);
  CommFaults faults;
  TRY(inject(arguments.inject, scene.clock, request, faults));
  Probes probes(workload.probe, *run.prepared.executor, *folder.store, messages.line);
  if (!workload.probe.all().empty())
    request.hooks.after_step = [&probes](std::int64_t step) { return probes.after_step(step); };
  EagerCheck eager(messages.line);
  if (arguments.eager) look_at_every_value(eager, request);

  const std::string file = TRY(next_event_file(*folder.store));
  const auto seen = [&](const Event& event) {
    viewers.event(event);
    metrics.see(event);
  };
  const auto refused = [&](const Error& why) { messages.warning(events_refused(why, folder.path, file)); };
  const auto events = TRY(EventFile::open(*folder.store, file, {.listener = seen, .on_failure = refused}));
  run.spans = TRY(open_spans(folder, file));
  request.ring = run.spans.get();
  tell_what_begins(run, served.get(), messages);
  const Result<TrainOutcome> outcome = train(run, request, scene.clock, *events);
  const Status written = events->close();
  if (!written.ok()) return events_lost(written.error(), folder.path, file, outcome);
  HereOutcome here{TRY(outcome), ""};
  if (run.asked.held() && here.end.ending == Ending::finished && here.end.saved)
    here.result = TRY(result_hash(run.prepared, folder, here.end.state.step));
  return here;
}

}  // namespace systole
