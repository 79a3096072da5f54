#include "operate/cli/run_command.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "execute/checkpoint/compare.h"
#include "execute/runtime/eager.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/process/signal_watch.h"
#include "operate/check/lint.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/held_plan.h"
#include "operate/cli/inject.h"
#include "operate/cli/job_lock.h"
#include "operate/cli/origin.h"
#include "operate/cli/plan_text.h"
#include "operate/cli/predicted_peak.h"
#include "operate/cli/probes.h"
#include "operate/cli/progress_lines.h"
#include "operate/cli/rank_processes.h"
#include "operate/cli/rank_threads.h"
#include "operate/cli/run_end.h"
#include "operate/cli/run_places.h"
#include "operate/cli/run_wait.h"
#include "operate/cli/train_run.h"
#include "operate/cli/xla_machine.h"
#include "operate/launch/secrets.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

Status hold_to_lock(const Prepared& prepared, const Node& now, const std::string& path) {
  if (prepared.workload.train.time) {
    return error(ErrorKind::invalid, "--locked: train.time ends a run where the clock says, each time elsewhere")
        .hinted("--set train.steps=N ends it at a step");
  }
  return check_lock(TRY(read_lock(path)), now, path);
}

// Of all tensors of the state that was saved last.
Result<std::string> result_hash(const Prepared& prepared, const RunFolder& folder, std::int64_t step) {
  const CheckpointHome home =
      TRY(checkpoint_home(*folder.store, folder.path, prepared.workload.checkpoint, Absent::is_an_error));
  const checkpoint::Folder checkpoints{home.store, home.dir, TRY(keys_of(prepared.workload.checkpoint, home))};
  return checkpoint::state_hash(TRY(checkpoint::open_step(checkpoints, step)));
}

// A run that is there keeps where it began; one that begins, where it begins now.
Status keep_origin(const RunFolder& run, const Workload& asked, Prepared& prepared, const WorkloadSource& source) {
  const std::string text = TRY(read_text(*run.store, RunFiles::workload));
  const std::string kept = TRY(read_workload(text, run.path + "/" + RunFiles::workload)).resume.from;
  TRY(keeps_origin(asked, kept, run.path, source));
  prepared.workload.resume.from = kept;
  return {};
}

void tell_origin(const Prepared& prepared, Context& context) {
  if (!prepared.origin) return;
  const Origin& origin = *prepared.origin;
  for (const checkpoint::Rejected& one : origin.passed_over) {
    Error told = below(origin.place.root, one.reason);
    told.message = fmt::format("resume.from: the checkpoint of step {} was passed over: {}", one.step, told.message);
    if (told.hint.empty())
      told.hint = fmt::format("`systole ckpt verify {}` tells of all of them", shell_word(origin.place.path));
    context.out.warning(told);
  }
  const checkpoint::Keys* keys = origin.place.folder.keys.get();
  if (keys != nullptr && keys->encryption && prepared.workload.checkpoint.encryption_key.empty())
    context.out.warning(fmt::format("'{}' is encrypted, and the checkpoints of this run will not be", origin.name),
                        "checkpoint.encryption_key, as that run has it");
  context.out.message(fmt::format("begins from '{}' (resume.from)", origin.name));
}

// Of the newest checkpoint in a run's folder, where there is one; else of the one that the run began from.
std::int64_t newest_step(const std::string& folder, const Workload& workload) {
  const auto store = open_posix_store(folder);
  if (!store.ok()) return 0;
  const auto home = checkpoint_home(**store, folder, workload.checkpoint, Absent::is_an_error);
  if (!home.ok()) return 0;
  const auto steps = checkpoint::list_steps({home->store, home->dir});
  if (steps.ok() && !steps->empty()) return steps->back();
  if (workload.resume.from.empty()) return 0;
  const auto origin = find_origin(workload, {});
  return origin.ok() ? origin->step() : 0;
}

// About the last 100 steps of the process: 48 KiB.
Result<std::unique_ptr<Ring>> open_spans(const RunFolder& folder, const std::string& event_file) {
  constexpr std::int64_t kSpans = 1024;
  TRY(make_dirs_synced(*folder.store, RunFiles::spans));
  const std::string file = span_file_of(event_file);
  if (TRY(folder.store->exists(file)))
    TRY(folder.store->remove(file));  // of one that was refused before its first event
  return Ring::create(folder.path + "/" + file, kSpans);
}

// What a run through XLA does not do, of what its options ask for. Its devices are all of this process.
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

}  // namespace

void add_run_arguments(Subcommand command, RunArguments& arguments) {
  command.add_option("--inject", arguments.inject,
                     "hold the run up on purpose: data=50ms@10,compute=20ms (places: data, compute, logging, "
                     "checkpoint); kill=PHASE@3 kills it");
  command.add_option("--chaos", arguments.chaos,
                     "kill, stop and delay ranks by chance, as this hazard file says: docs/guide/many-ranks.md");
  const char* eager = std::getenv("SYSTOLE_EAGER");
  arguments.eager = eager != nullptr && *eager != '\0' && std::string_view(eager) != "0";
  command.add_flag(
      "--eager", arguments.eager,
      "look at every value as it is made, slowly: the ops of the first step are listed, and the first value "
      "that is no number ends the run with its name; SYSTOLE_EAGER=1 says the same");
  command.add_option("--metrics", arguments.metrics,
                     "serve the metrics of rank 0 as Prometheus reads them, at http://[HOST:]PORT/metrics; without a "
                     "host to this machine alone");
  command.add_flag("--in-process", arguments.in_process, "ranks are threads of this process");
  command.add_option("--wait", arguments.wait,
                     "how long to wait for another process that works on the run, as 10min; without: not at all");
  command.add_flag("--dry-run", arguments.dry_run, "plan and check all that can be checked, start nothing");
}

// How the mesh gets so many devices, as an edit that stands for --ranks.
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

// The mesh that the number of ranks asks for where the workload has none.
Workload on_ranks(Workload workload, const RankRange& count, const RunArguments& arguments) {
  if (workload.mesh.empty() && count.most > 1) workload.mesh = {{"data", count.most}};
  const std::int64_t ranks = ranks_of(workload);
  if (count.said() &&
      (count.most != ranks || (!workload.mesh.empty() && count.least != ranks && count.most != ranks))) {
    fail(error(ErrorKind::invalid, "--ranks {}: the workload's mesh has {}", arguments.ranks.ranks,
               counted(ranks, "device"))
             .hinted(mesh_of_ranks(workload.mesh, count.most)));
  }
  if (ranks == 1) return workload;
  const char* alone = arguments.eager ? "--eager" : !arguments.lock.empty() ? "--locked" : nullptr;
  if (alone != nullptr) {
    fail(error(ErrorKind::unsupported, "{} is for one device, and there are {}", alone, ranks)
             .hinted(fmt::format("leave {} out, or the mesh", alone)));
  }
  return for_ranks(workload);
}

Result<std::unique_ptr<TextServer>> serve_metrics(const std::string& at, const RunMetrics& metrics) {
  if (at.empty()) return std::unique_ptr<TextServer>();
  const bool port_alone = at.find_first_not_of("0123456789") == at.npos;
  const Result<NetAddress> address = parse_address(port_alone ? "127.0.0.1:" + at : at);
  if (!address.ok())
    return error(ErrorKind::invalid, "--metrics: '{}' is no [HOST:]PORT", at)
        .hinted("--metrics 9090, or --metrics 0.0.0.0:9090 for whoever reaches this machine");
  return TextServer::start({.bind = *address, .text = [&metrics] { return metrics.text(); }});
}

ExitCode run_workload(const Workload& asked, PrepareOptions preparing, const RunArguments& arguments, Begins begins,
                      Context& given) {
  const std::unique_ptr<Clock> wrong = injected_clock(arguments.inject, -1, given.clock).value();
  for (const auto& [name, value] : asked.env) ::setenv(name.c_str(), value.c_str(), 1);  // of its ranks, too
  if (!arguments.dry_run) keep_to_owner(asked);
  if (!arguments.dry_run)
    for (const auto& [name, value] : read_secrets(asked).value()) ::setenv(name.c_str(), value.c_str(), 1);
  Context context{given.out, wrong != nullptr ? *wrong : given.clock, given.command_line};
  const RankRange count = read_ranks(arguments.ranks.ranks).value();
  if (count.least != count.most && (!asked.mesh.empty() || arguments.in_process)) {
    fail(error(ErrorKind::invalid,
               "--ranks {}: how many there are may change only where the workload has no mesh and "
               "ranks are processes",
               arguments.ranks.ranks)
             .hinted("--ranks with one number, or take mesh out"));
  }
  const Workload workload = on_ranks(asked, count, arguments);
  const std::int64_t ranks = ranks_of(workload);
  const std::int64_t machines = machines_of(arguments.ranks, ranks);
  const std::optional<Seconds> budget_buys =
      budget_of(asked, arguments.plan ? &*arguments.plan : nullptr, machines, arguments.budget).value();
  const bool xla = is_xla(preparing.backend);
  if (xla) check_xla_run(arguments, preparing.backend, ranks).value();
  BegunWith begun;  // by a run that goes on
  if (begins != Begins::anew) begun = begun_with(arguments.folder).value();
  preparing.has_begun = begins != Begins::anew && path_exists(arguments.folder + "/" + RunFiles::plan);
  same_weights(begun, workload, arguments.folder).value();
  preparing.data.run = arguments.folder;
  preparing.data.begun = begun.dataset;
  preparing.over_tcp = !arguments.ranks.rendezvous.empty() && arguments.ranks.local < ranks;
  // The ranks of this node share what it may take: all of them at most, here; as many as a generation has, in rank.cc.
  const Bytes of_node = limit_of(workload, preparing);
  const std::int64_t here = preparing.over_tcp && arguments.ranks.local > 0 ? arguments.ranks.local : ranks;
  if (ranks > 1 && (!xla || preparing.backend == "xla-cpu")) preparing.sharers = here;
  if (arguments.plan) room_for(*arguments.plan, of_node, preparing.backend).value();
  std::unique_ptr<Ring> spans;  // outlives the ledger
  TimeLedger ledger(context.clock, Category::startup);
  SignalWatch signals;
  signals.end_at_once();          // data may take hours to prepare, or another agent's to be waited for
  std::signal(SIGPIPE, SIG_IGN);  // a reader of its lines that goes away must not end a run
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no further is an error of who writes it
  Prepared prepared = prepare(workload, preparing, context.clock, &ledger).value();
  context.out.end_progress();
  if (prepared.machine.stale) context.out.warning(*prepared.machine.stale);
  if (prepared.machine.tls_left_out)
    context.out.warning("ranks.tls: its cost is not in the estimate: it was not measured here", "systole calibrate");
  if (const auto cut = prepared.data.cut_pairs()) context.out.warning(*cut);
  if (prepared.weights && prepared.weights->head_is_embedding) {
    context.out.warning(fmt::format(
        "the head of '{}' is its embedding, unscaled; here it begins as a copy of it, and the two are trained apart",
        prepared.weights->path));
  }
  tell_origin(prepared, context);
  if (const auto idle = idle_axes(prepared)) context.out.warning(*idle);
  if (const auto ragged = empty_rows(prepared.workload))
    context.out.warning(fmt::format("{}: {}", ragged->key, ragged->text), ragged->hint);
  check_injections(arguments.inject, {workload, *prepared.job.program, ranks, arguments.in_process}).value();
  if (arguments.plan) {
    const std::optional<std::string> elsewhere = hold_to_plan(*arguments.plan, prepared.plan).value();
    if (elsewhere) context.out.message(*elsewhere);
  }
  if (arguments.dry_run) {
    const std::int64_t done = prepared.origin          ? prepared.origin->step()
                              : begins == Begins::anew ? 0
                                                       : newest_step(arguments.folder, workload);
    context.out.prose(plan_text(prepared.plan, done));
    if (context.out.json()) context.out.json(parse_json(to_json(prepared.plan), "plan.json").value());
  }
  fits(prepared).value();
  const bool held = !arguments.lock.empty();
  std::optional<Node> lock;  // of what begins: it is kept, or held to another
  if (held || !(begins == Begins::where_it_was || arguments.dry_run)) lock = lock_of(prepared).value();
  if (held) hold_to_lock(prepared, *lock, arguments.lock).value();
  if (arguments.dry_run) return ExitCode::done;
  std::optional<RunFolder> taken;
  bool resume = false;
  const auto take = [&]() -> Status {
    taken = TRY(claim_run_folder(arguments, begins));
    resume = taken->holds_run;
    TRY(claim_checkpoints(*taken, workload.checkpoint));
    if (resume && begins == Begins::either) TRY(same_run(*taken, workload));
    if (resume) TRY(keep_origin(*taken, asked, prepared, preparing.source));
    if (resume) TRY(check_goes_on(prepared, *taken));
    TRY(check_disk(prepared, *taken));  // before anything says that there was a run
    if (!resume) TRY(write_whole(*taken->store, kRunLock, to_json(*lock, 2) + "\n"));
    return Done{};
  };
  std::unique_ptr<RunBudget> budget;  // of who holds the folder
  const auto begin_budget = [&]() -> Status {
    if (!budget_buys) return {};
    budget = TRY(RunBudget::begin(*budget_buys, machines, taken->path, arguments.budget, context.clock));
    const std::optional<double> dollars = asked.objective.budget;  // nothing where --budget-time alone is said
    context.out.notice(fmt::format("budget: {}{} of its machines' time, of which {} is left",
                                   dollars ? to_string(Dollars(*dollars)) + " is " : "", to_string(budget->all()),
                                   to_string(std::max(budget->left(), Seconds()))));
    return {};
  };
  const auto ended = [&](ExitCode code) {
    signals.end_is_known();
    const Status noted = budget != nullptr ? budget->end(static_cast<int>(code)) : Status();
    if (!noted.ok()) context.out.warning(noted.error());  // the next one closes the turn
    return code;
  };
  const std::unique_ptr<PreemptionWatch> preemption = PreemptionWatch::start({workload.ranks.preemption}).value();
  if (ranks > 1 && !arguments.in_process && !xla) {
    RankProcesses processes;
    processes.take = [&]() -> Status {
      const RunMetrics none;
      (void)TRY(serve_metrics(arguments.metrics, none));  // rank 0 can
      TRY(take());
      Workload kept = asked;
      kept.resume = prepared.workload.resume;
      TRY(write_whole(*taken->store, RunFiles::workload, to_yaml(kept)));
      if (!resume)
        TRY(write_whole(*taken->store, RunFiles::plan, to_json(prepared.plan)));  // the last: by it there is a run
      context.out.notice(fmt::format(
          "{}: {} on {} of {}, {} planned for each", workload.name, taken->path,
          count.said() && arguments.ranks.ranks != "1" ? arguments.ranks.ranks + " ranks" : counted(ranks, "rank"),
          prepared.plan.target.name, to_string(prepared.memory.total())));
      return begin_budget();
    };
    processes.ranks = arguments.ranks;
    if (!count.said()) processes.ranks.ranks = std::to_string(ranks);
    processes.backend = preparing.backend;
    processes.pin_isa = preparing.pin_isa;
    processes.inject = arguments.inject;
    processes.chaos = arguments.chaos;
    processes.memory = of_node;
    processes.folder = arguments.folder;
    processes.metrics = arguments.metrics;
    processes.budget_buys = budget_buys;
    processes.ledger = arguments.budget.ledger;
    if (budget_buys) processes.budget_is_used = [&] { return budget != nullptr && budget->left() <= Seconds(); };
    return ended(run_in_processes(processes, prepared, signals, *preemption, context).value());
  }
  if (!arguments.chaos.empty()) {
    fail(error(ErrorKind::invalid, "--chaos is for ranks that are processes, and here is one").hinted("--ranks 2"));
  }
  signals.hold();
  RunMetrics metrics;
  const std::unique_ptr<TextServer> served = serve_metrics(arguments.metrics, metrics).value();
  take().value();
  RunFolder& folder = *taken;
  begin_budget().value();
  RunRequest request;
  if (budget != nullptr) request.budget = budget->of_trainer();
  request.folder = folder.path;
  request.resume = resume;
  request.command = context.command_line;
  const Seconds notice = workload.ranks.notice.value_or(RanksSpec::kNotice);
  std::optional<Seconds> asked_at;
  request.stop_requested = [&] {
    if (!asked_at && (signals.stop_requested() || preemption->announced())) asked_at = context.clock.now();
    return asked_at.has_value();
  };
  request.time_to_stop = [&] {  // who presses Ctrl-C waits for the save
    if (!asked_at || (signals.signal() == SIGINT && !preemption->announced())) return Seconds(1e9);
    return notice - (context.clock.now() - *asked_at);
  };
  request.rejected = [&context, path = folder.path](const checkpoint::Rejected& r) {
    Error told = below(path, r.reason);
    told.message = fmt::format("the checkpoint of step {} was passed over: {}", r.step, told.message);
    if (told.hint.empty()) told.hint = fmt::format("`systole ckpt verify {}` tells of all of them", shell_word(path));
    context.out.warning(told);
  };
  CommFaults faults;
  request.executor = prepared.executor.get();
  inject(arguments.inject, context.clock, request, faults).value();
  Probes probes(workload.probe, *prepared.executor, *folder.store,
                [&context](const std::string& line) { context.out.data(line); });
  if (!workload.probe.all().empty())
    request.hooks.after_step = [&probes](std::int64_t step) { return probes.after_step(step); };
  EagerCheck eager([&context](const std::string& line) { context.out.data(line); });
  if (arguments.eager) {
    request.observer = &eager;
    request.hooks.on_action = [&eager](std::int64_t step, const Action& action, const Function& function) {
      eager.enter(step, action, function);
    };
  }

  ProgressLines lines(context.out, prepared.plan, workload.observe.every);
  const Device& device = *prepared.machine.device;
  request.began = [&](const TrainState& state) {
    context.out.message(kernels_text(device));
    lines.begin(state.step, state.tokens, state.trained);
    if (resume) context.out.message(goes_on_text(state.step));
  };
  const std::string file = next_event_file(*folder.store).value();
  const auto listener = [&lines, &metrics](const Event& event) {
    lines.see(event);
    metrics.see(event);
  };
  const std::unique_ptr<EventFile> events = EventFile::open(*folder.store, file, {.listener = listener}).value();
  if (served != nullptr) context.out.message(fmt::format("metrics: http://{}/metrics", to_string(served->address())));
  spans = open_spans(folder, file).value();
  request.ring = spans.get();
  context.out.notice(fmt::format("{}: {} on {}, {} planned", workload.name, folder.path, prepared.plan.target.name,
                                 to_string(prepared.memory.total())));
  if (xla) {
    const auto peak = predicted_peak_text(preparing.backend, prepared.machine.catalog_entry, *prepared.job.program,
                                          temporaries_of(device));
    if (peak) context.out.message(*peak);
  }
  const Result<TrainOutcome> outcome = caught([&] {
    if (prepared.job.program->mesh.trivial()) return run_job(prepared, folder, request, context.clock, ledger, *events);
    return run_in_threads(prepared, preparing, folder, request, context.clock, ledger, *events);
  });
  const Status written = events->close();
  context.out.end_progress();
  if (!written.ok()) fail(events_lost(written.error(), folder.path, file, outcome));
  const TrainOutcome& end = outcome.value();
  std::string result;
  if (held && end.ending == Ending::finished && end.saved)
    result = result_hash(prepared, folder, end.state.step).value();
  tell_end(end, prepared.workload, result, folder.path, arguments.again, context);
  if (end.ending == Ending::stopped && signals.signal() == SIGINT && !end.saved) return ended(ExitCode::interrupted);
  return ended(exit_of(end));
}

}  // namespace systole::cli
