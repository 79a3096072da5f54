// `systole rank FOLDER`: one rank of a run, started by its agent (rank_processes.h) with its place in the environment.
// Not for people: it is not listed.

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "execute/comm/collectives.h"
#include "execute/comm/faults.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "execute/train/stage_watch.h"
#include "ground/process/core_wait.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/budget.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/inject.h"
#include "operate/cli/job_lock.h"
#include "operate/cli/progress_lines.h"
#include "operate/cli/rank_threads.h"
#include "operate/cli/run_command.h"
#include "operate/cli/run_end.h"
#include "operate/cli/workload_options.h"
#include "operate/launch/rank_seat.h"
#include "operate/observe/event_file.h"
#include "operate/observe/rank_files.h"
#include "operate/observe/run_files.h"

namespace systole::cli {
namespace {

struct RankOptions {
  std::string folder, backend = "cpu", pin_isa, memory, inject, metrics;
  BudgetArguments budget;
};

// Whether a collective failed: then this rank is a victim of whoever is gone, or does not do the same.
class LossWatch final : public Communicator {
 public:
  LossWatch(Communicator& inner, StageWatch& stages) : inner_(inner), stages_(stages) {}
  std::int32_t rank() const override { return inner_.rank(); }
  std::int32_t num_ranks() const override { return inner_.num_ranks(); }
  Result<std::unique_ptr<PreparedCollective>> prepare(const CollectiveCall& call, const std::byte* from,
                                                      std::byte* into, std::byte* workspace) override {
    return inner_.prepare(call, from, into, workspace);
  }
  Status run(PreparedCollective& collective, WorkCounters& counters) override {
    stages_.enter_collectives();
    return left(inner_.run(collective, counters));
  }
  Status start(PreparedCollective& collective) override { return seen(inner_.start(collective)); }
  Status progress() override { return seen(inner_.progress()); }
  Status finish(PreparedCollective* collective, WorkCounters& counters) override {
    stages_.enter_collectives();
    return left(inner_.finish(collective, counters));
  }
  Result<std::unique_ptr<PreparedTransfer>> prepare(const TransferCall& call, std::byte* at) override {
    return inner_.prepare(call, at);
  }
  Status post(PreparedTransfer& transfer, WorkCounters& counters) override {
    return seen(inner_.post(transfer, counters));
  }
  Status finish_transfers() override {
    stages_.enter_collectives();
    return left(inner_.finish_transfers());
  }
  void observe(CollectiveObserver* observer) override { inner_.observe(observer); }
  Status broadcast(std::span<std::byte> bytes, std::int32_t root) override {
    return seen(inner_.broadcast(bytes, root));
  }
  Status barrier() override { return seen(inner_.barrier()); }
  void abort(const std::string& why) override { inner_.abort(why); }
  bool lost() const { return lost_; }

 private:
  Status seen(Status status) {
    lost_ = lost_ || !status.ok();
    return status;
  }
  Status left(Status status) {
    stages_.leave_collectives(status.ok());
    return seen(std::move(status));
  }
  Communicator& inner_;
  StageWatch& stages_;
  bool lost_ = false;
};

// Ranks of one host share memory, which rank 0 makes; those of several speak over TCP.
Result<std::unique_ptr<Transport>> meet(RankSeat& seat, Seconds patience) {
  const RankIdentity& identity = seat.identity();
  const auto [number, ranks] = std::pair(identity.place.rank, identity.place.num_ranks);
  if (identity.place.num_nodes > 1) {
    TcpOptions options{.mesh = {.host = identity.host}, .patience = patience};
    if (identity.tls) options.mesh.tls = TRY(Tls::of(identity.token));
    return tcp_transport(seat.rendezvous(), number, ranks, options);
  }
  constexpr const char* kKey = "segment";
  constexpr Seconds kPatience(60);
  std::shared_ptr<Segment> segment;
  if (number == 0) {
    segment = TRY(Segment::create(ranks, identity.token.hex()));
    TRY(seat.rendezvous().set(kKey, segment->place()));
  } else {
    segment = TRY(Segment::open(TRY(seat.rendezvous().wait(kKey, kPatience)), identity.token.hex()));
  }
  TRY(seat.wait_for_all("segment", kPatience));
  return ring_transport(std::move(segment), number, {.patience = patience});
}

// Of several nodes, rank 0's: what each machine has measured chooses the algorithms, and all must choose the same.
Result<RanksLink> agreed_link(RankSeat& seat, Clock& clock) {
  constexpr const char* kKey = "link";
  if (seat.identity().place.rank == 0) {
    RanksLink own = TRY(find_link(clock, seat.identity().place.num_ranks, true));
    TRY(seat.rendezvous().set(
        kKey, fmt::format("{:a} {:a} {}", own.cost.latency.count(), own.cost.bandwidth.count(), own.source)));
    return own;
  }
  const std::string text = TRY(seat.rendezvous().wait(kKey, Seconds(60.0)));
  char* end = nullptr;
  const Seconds latency(std::strtod(text.c_str(), &end));
  const BytesPerSecond bandwidth(std::strtod(end, &end));
  if (bandwidth <= BytesPerSecond() || *end != ' ')
    return error(ErrorKind::corrupt, "rank 0 said '{}' for how fast ranks speak", text);
  return RanksLink{{latency, bandwidth}, end + 1};
}

// Of a mesh that was not said: all ranks have a part of the batch.
Workload for_this_many(Workload workload, std::int64_t ranks) {
  if (workload.mesh.empty() && ranks > 1) workload.mesh = {{"data", ranks}};
  return for_ranks(workload);
}

Result<std::unique_ptr<FlightLog>> open_flight(const std::string& folder, const RankIdentity& who, Clock& clock) {
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const std::string file = TRY(next_flight_file(*store, who.place.rank));
  FlightIdentity identity{
      getpid(),         who.place.rank, who.place.num_ranks, static_cast<std::int64_t>(who.place.generation),
      who.token.mark(), clock.now()};
  return FlightLog::create(folder + "/" + file, identity);
}

// Asked to stop, ranks have the run's notice to save; a part of it is the agent's.
class StopWatch {
 public:
  StopWatch(const SignalWatch& signals, Clock& clock, Seconds notice)
      : signals_(signals), clock_(clock), notice_(notice * 0.9) {}
  bool requested() {
    if (signals_.stop_requested() && !since_) since_ = clock_.now();
    return since_.has_value();
  }
  Seconds left() const { return since_ ? notice_ - (clock_.now() - *since_) : notice_; }

 private:
  const SignalWatch& signals_;
  Clock& clock_;
  Seconds notice_;
  std::optional<Seconds> since_;
};

// Of a rank that cannot trust itself: the agent starts another one in its place.
constexpr auto kFaulty = static_cast<ExitCode>(70);

ExitCode rank(const RankOptions& options, Context& given) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  SignalWatch signals;
  const RankIdentity identity = rank_identity_from_environment().value();
  const std::int64_t number = identity.place.rank;
  const std::unique_ptr<Clock> wrong = injected_clock(options.inject, number, given.clock).value();
  Context context{given.out, wrong != nullptr ? *wrong : given.clock, given.command_line};
  const auto seat =
      RankSeat::take(identity, {.lost = [](const Error&) { _exit(static_cast<int>(ExitCode::not_saved)); }}).value();
  const std::unique_ptr<FlightLog> flight = open_flight(options.folder, identity, context.clock).value();
  const CoreWait cores;
  StageWatch stages(*flight, context.clock, [&cores] { return cores.so_far(); });
  TimeLedger ledger(context.clock, Category::startup);
  ledger.tell(&stages);
  WorkloadArguments arguments;
  arguments.path = options.folder + "/workload.yaml";
  arguments.kept = true;
  arguments.memory = options.memory;
  arguments.backend = options.backend;
  arguments.pin_isa = options.pin_isa;
  const LoadedWorkload loaded = load_workload(arguments).value();
  const Workload workload = for_this_many(loaded.workload, identity.place.num_ranks);
  PrepareOptions preparing = prepare_options(arguments, loaded, context).value();
  preparing.data.patience = Seconds(60);
  preparing.data.run = options.folder;
  preparing.data.begun = begun_with(options.folder).value().dataset;
  preparing.rank = number;
  preparing.alone = true;  // whoever started the ranks has looked at all stages
  preparing.sharers = identity.place.local_ranks;
  if (identity.place.num_nodes > 1) preparing.link = agreed_link(*seat, context.clock).value();
  Prepared prepared = prepare(workload, preparing, context.clock).value();
  RunFolder folder{options.folder, nullptr, open_posix_store(options.folder).value()};
  checkpoint::SaveGroup group;
  group.rank = identity.place.rank;
  group.world = identity.place.num_ranks;
  group.launch = fmt::format("{:016x}", identity.token.mark());
  group.generation = static_cast<std::int64_t>(identity.place.generation);
  group.clock = &context.clock;
  if (number == 0) {
    const CheckpointHome home =
        checkpoint_home(*folder.store, folder.path, workload.checkpoint, Absent::is_an_error).value();
    checkpoint::claim({home.store, home.dir}, group).value();
  }
  RunRequest request;
  CommFaults faults;
  request.role = {number, nullptr, group};
  request.executor = prepared.executor.get();
  inject(options.inject, context.clock, request, faults).value();
  const std::unique_ptr<Transport> transport =
      meet(*seat, workload.ranks.patience.value_or(RanksSpec::kPatience)).value();
  const auto faulty = faulty_transport(*transport, faults, context.clock);
  const std::unique_ptr<Communicator> collectives =
      make_communicator(faults.any() ? *faulty : *transport, prepared.job.program->mesh).value();
  const auto erring = faulty_communicator(*collectives, faults);
  LossWatch communicator(faults.any() ? *erring : *collectives, stages);
  transport->observe(&stages);
  communicator.observe(&stages);
  stages.mark(FlightMark::met);

  request.folder = options.folder;
  request.resume = true;
  request.documents = false;
  request.command = context.command_line;
  request.role = {number, &communicator, group};
  request.stages = &stages;
  if (number == 0) {
    request.rejected = [&context](const checkpoint::Rejected& r) {
      context.out.warning(fmt::format("the checkpoint of step {} was passed over: {}", r.step, r.reason.message));
    };
  }
  StopWatch stop(signals, context.clock, workload.ranks.notice.value_or(RanksSpec::kNotice));
  request.stop_requested = [&stop] { return stop.requested(); };
  request.time_to_stop = [&stop] { return stop.left(); };
  std::unique_ptr<RunBudget> budget;
  if (number == 0 && !options.budget.time.empty()) {
    const Seconds all = *budget_of(workload, nullptr, 1, options.budget).value();
    budget = RunBudget::look(all, options.folder, options.budget, context.clock).value();
    request.budget = budget->of_trainer();
  }
  ProgressLines lines(context.out, prepared.plan, workload.observe.every);
  RunMetrics metrics;
  std::unique_ptr<TextServer> served;
  EventFileOptions listening;
  std::unique_ptr<Store> records = open_posix_store(options.folder).value();
  if (number == 0) {
    request.began = [&](const TrainState& state) {
      lines.begin(state.step, state.tokens, state.trained);
      if (state.step > 0) context.out.message(goes_on_text(state.step));
    };
    served = serve_metrics(options.metrics, metrics).value();
    listening.listener = [&lines, &metrics](const Event& event) {
      lines.see(event);
      metrics.see(event);
    };
    if (served != nullptr) context.out.message(fmt::format("metrics: http://{}/metrics", to_string(served->address())));
  } else {
    const std::string own = fmt::format("ranks/{}", number);
    make_dirs_synced(*records, own).value();
    records = open_posix_store(options.folder + "/" + own).value();
    listening.listener = [&context](const Event& event) {
      const auto* note = std::get_if<Note>(&event.body);
      if (note != nullptr && note->level == "error") context.out.message("error: " + note->text);
    };
  }
  const std::string file = next_event_file(*records).value();
  const std::unique_ptr<EventFile> events = EventFile::open(*records, file, std::move(listening)).value();
  const Result<TrainOutcome> outcome =
      caught([&] { return run_job(prepared, folder, request, context.clock, ledger, *events); });
  if (!outcome.ok() && !communicator.lost())
    communicator.abort(fmt::format("rank {}: {}", number, outcome.error().message));
  if (!outcome.ok()) flight->failed(outcome.error().message);
  stages.mark(FlightMark::ended);
  const Status written = events->close();
  context.out.end_progress();
  if (!outcome.ok() && communicator.lost()) {
    Error gave_up = outcome.error();
    gave_up.message = fmt::format("in step {}: {}", flight->read().now.step, gave_up.message);
    context.out.message(to_string(gave_up));
    return ExitCode::not_saved;
  }
  if (!outcome.ok() && ReplayCheck::found(outcome.error())) {
    context.out.message(fmt::format("rank {}: {}", number, to_string(outcome.error())));
    return kFaulty;
  }
  if (!written.ok()) fail(events_lost(written.error(), options.folder, file, outcome));
  const TrainOutcome& ended = outcome.value();
  signals.end_is_known();
  if (number == 0) tell_end(ended, prepared.workload, "", options.folder, "", context);
  return exit_of(ended);
}

}  // namespace

void add_rank(Subcommand app, Context& context) {
  auto options = std::make_shared<RankOptions>();
  Subcommand command = add_command(app, "rank", "one rank of a run, started by its agent", options, context, rank);
  command.hidden();
  command.add_option("folder", options->folder, "the run's").required();
  command.add_option("--backend", options->backend, "cpu, or reference")
      .check(one_of({"cpu", "reference", "gpu", "tpu", "xla-cpu"}));
  command.add_option("--pin-isa", options->pin_isa, "as run --pin-isa");
  command.add_option("--memory", options->memory, "of all ranks of this node");
  command.add_option("--inject", options->inject, "as run --inject");
  command.add_option("--metrics", options->metrics, "as run --metrics");
  add_budget_arguments(command, options->budget);
}

}  // namespace systole::cli
