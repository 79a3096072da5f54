#include "operate/run/rank_run.h"

#include <unistd.h>

#include <cstdlib>

#include "execute/comm/collectives.h"
#include "execute/comm/faults.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "execute/train/stage_watch.h"
#include "ground/base/exit_code.h"
#include "ground/process/core_wait.h"
#include "operate/launch/rank_seat.h"
#include "operate/observe/event_file.h"
#include "operate/observe/rank_files.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/inject.h"
#include "operate/run/job_lock.h"
#include "operate/run/metrics_server.h"
#include "operate/run/rank_threads.h"
#include "operate/run/run_end.h"
#include "operate/run/stop_watch.h"
#include "operate/run/workload_arguments.h"

namespace systole {
namespace {

// Whether a collective failed: then this rank is a victim of one that is gone or does not run the same collective.
class CollectiveFailureDetector final : public Communicator {
 public:
  CollectiveFailureDetector(Communicator& inner, StageWatch& stages) : inner_(inner), stages_(stages) {}
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

// Ranks of one host use shared memory, which rank 0 creates; ranks of several hosts use TCP, encrypted if configured.
Result<std::unique_ptr<Transport>> connect_rank(RankSeat& seat, Seconds patience) {
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

// Rank 0's link, if there are several nodes: the measured link chooses the algorithms, and all ranks must choose the
// same.
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

// A mesh that was not given gets all ranks on the data axis.
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

// Exit code of a rank that cannot trust itself; the agent starts another one in its place.
constexpr int kFaulty = 70;

constexpr double kPartOfRank = 0.9;  // share of the run's notice; the agent has the rest

class RankRun {
 public:
  RankRun(const RankRequest& asked, const RankViewers& viewers, const RunScene& scene, const RankIdentity& identity,
          Clock& clock)
      : asked_(asked),
        viewers_(viewers),
        scene_(scene),
        messages_(scene.messages),
        identity_(identity),
        clock_(clock) {}

  Status take_seat();
  Status prepare_job();
  Status take_folder();
  Status connect();
  Status ask();
  Status open_events();
  Result<int> train();

 private:
  bool first() const { return identity_.place.rank == 0; }
  std::int64_t number() const { return identity_.place.rank; }
  Status ask_of_first();
  Result<int> ended(const Result<TrainOutcome>& outcome, const Status& written);

  const RankRequest& asked_;
  const RankViewers& viewers_;
  const RunScene& scene_;
  const RunMessages& messages_;
  const RankIdentity& identity_;
  Clock& clock_;
  SignalWatch signals_;
  std::unique_ptr<RankSeat> seat_;
  std::unique_ptr<FlightLog> flight_;
  CoreWait cores_;
  std::optional<StageWatch> stages_;
  std::optional<TimeLedger> ledger_;
  Workload workload_;
  std::optional<PlannedRun> prepared_;
  std::optional<RunFolder> folder_;
  checkpoint::SaveGroup group_;
  RunRequest request_;
  CommFaults faults_;
  std::unique_ptr<Transport> transport_, faulty_;
  std::unique_ptr<Communicator> collectives_, erring_;
  std::optional<CollectiveFailureDetector> communicator_;
  std::optional<RankStopWatch> stop_;
  std::unique_ptr<RunBudget> budget_;
  RunViewers seen_by_;
  RunMetrics metrics_;
  std::unique_ptr<HttpServer> served_;
  std::unique_ptr<Store> records_;  // for its events
  std::string events_file_;
  std::unique_ptr<EventFile> events_;
};

Status RankRun::take_seat() {
  seat_ = TRY(RankSeat::take(identity_, {.lost = [](const Error&) { _exit(kExitNotSaved); }}));
  flight_ = TRY(open_flight(asked_.folder, identity_, clock_));
  stages_.emplace(*flight_, clock_, [this] { return cores_.so_far(); });
  ledger_.emplace(clock_, Category::startup);
  ledger_->tell(&*stages_);
  return {};
}

Status RankRun::prepare_job() {
  WorkloadArguments arguments;
  arguments.path = asked_.folder + "/workload.yaml";
  arguments.kept = true;
  arguments.memory = asked_.memory;
  arguments.backend = asked_.backend;
  arguments.pin_isa = asked_.pin_isa;
  const LoadedWorkload loaded = TRY(load_workload(arguments));
  workload_ = for_this_many(loaded.workload, identity_.place.num_ranks);
  PrepareOptions preparing = TRY(prepare_options(arguments, loaded));
  preparing.data.progress = viewers_.data(loaded.workload);
  preparing.data.patience = Seconds(60);
  preparing.data.run = asked_.folder;
  preparing.data.begun = TRY(recorded_inputs(asked_.folder)).dataset;
  preparing.rank = number();
  preparing.alone = true;  // the ranks' starter has planned all stages
  preparing.sharers = identity_.place.local_ranks;
  if (identity_.place.num_nodes > 1) preparing.link = TRY(agreed_link(*seat_, clock_));
  prepared_ = TRY(prepare(workload_, preparing, clock_));
  return {};
}

Status RankRun::take_folder() {
  std::unique_ptr<Store> store = TRY(open_posix_store(asked_.folder));
  folder_ = RunFolder{asked_.folder, nullptr, std::move(store)};
  group_.rank = identity_.place.rank;
  group_.world = identity_.place.num_ranks;
  group_.launch = fmt::format("{:016x}", identity_.token.mark());
  group_.generation = static_cast<std::int64_t>(identity_.place.generation);
  group_.clock = &clock_;
  if (!first()) return {};
  const CheckpointHome home = TRY(checkpoint_home(folder_->path, workload_.checkpoint, Absent::is_an_error));
  return checkpoint::claim(home.folder, group_);
}

Status RankRun::connect() {
  request_.role = {number(), nullptr, group_};
  request_.executor = prepared_->executor.get();
  TRY(inject(asked_.inject, clock_, request_, faults_));
  transport_ = TRY(connect_rank(*seat_, workload_.ranks.patience.value_or(RanksSpec::kPatience)));
  faulty_ = faulty_transport(*transport_, faults_, clock_);
  collectives_ = TRY(make_communicator(faults_.any() ? *faulty_ : *transport_, prepared_->job.program->mesh));
  erring_ = faulty_communicator(*collectives_, faults_);
  communicator_.emplace(faults_.any() ? *erring_ : *collectives_, *stages_);
  transport_->observe(&*stages_);
  communicator_->observe(&*stages_);
  stages_->mark(FlightMark::connected);
  return {};
}

Status RankRun::ask() {
  request_.folder = asked_.folder;
  request_.resume = true;
  request_.documents = false;
  request_.command = scene_.command_line;
  request_.role = {number(), &*communicator_, group_};
  request_.stages = &*stages_;
  stop_.emplace(signals_, clock_, workload_.ranks.notice.value_or(RanksSpec::kNotice) * kPartOfRank);
  request_.stop_requested = [this] { return stop_->requested(); };
  request_.time_to_stop = [this] { return stop_->left(); };
  return first() ? ask_of_first() : Status();
}

// Output for the run as a whole.
Status RankRun::ask_of_first() {
  request_.passed_over = messages_.warning;
  request_.hooks.on_stop = [this](std::int64_t step) { messages_.message(stopping_text(step)); };
  if (!asked_.budget.time.empty()) {
    const Seconds all = *TRY(budget_of(workload_, nullptr, 1, asked_.budget));
    budget_ = TRY(RunBudget::look(all, asked_.folder, asked_.budget, clock_));
    request_.budget = budget_->of_trainer();
  }
  seen_by_ = viewers_.first(*prepared_);
  request_.began = [this](const TrainState& state) {
    seen_by_.began(state);
    if (state.step > 0) messages_.message(goes_on_text(state.step));
  };
  served_ = TRY(serve_metrics(asked_.metrics, metrics_));
  if (served_ != nullptr) messages_.message(fmt::format("metrics: http://{}/metrics", to_string(served_->address())));
  return {};
}

Status RankRun::open_events() {
  EventFileOptions listening;
  records_ = TRY(open_posix_store(asked_.folder));
  if (first()) {
    listening.listener = [this](const Event& event) {
      seen_by_.event(event);
      metrics_.see(event);
    };
  } else {
    const std::string own = fmt::format("ranks/{}", number());
    TRY(make_dirs_synced(*records_, own));
    records_ = TRY(open_posix_store(asked_.folder + "/" + own));
    listening.listener = [this](const Event& event) {
      const auto* note = std::get_if<Note>(&event.body);
      if (note != nullptr && note->level == "error") messages_.message("error: " + note->text);
    };
  }
  events_file_ = TRY(next_event_file(*records_));
  listening.on_failure = [this](const Error& why) {
    messages_.warning(events_refused(why, asked_.folder, events_file_));
  };
  events_ = TRY(EventFile::open(*records_, events_file_, std::move(listening)));
  return {};
}

Result<int> RankRun::train() {
  const Result<TrainOutcome> outcome =
      caught([&] { return run_job(*prepared_, *folder_, request_, clock_, *ledger_, *events_); });
  if (!outcome.ok() && !communicator_->lost())
    communicator_->abort(fmt::format("rank {}: {}", number(), outcome.error().message));
  if (!outcome.ok()) flight_->failed(outcome.error().message, outcome.error().code);
  stages_->mark(FlightMark::ended);
  return ended(outcome, events_->close());
}

Result<int> RankRun::ended(const Result<TrainOutcome>& outcome, const Status& written) {
  if (!outcome.ok() && communicator_->lost()) {
    Error gave_up = outcome.error();
    gave_up.message = fmt::format("in step {}: {}", flight_->read().now.step, gave_up.message);
    messages_.message(to_string(gave_up));
    return kExitNotSaved;
  }
  if (!outcome.ok() && ReplayCheck::found(outcome.error())) {
    messages_.message(fmt::format("rank {}: {}", number(), to_string(outcome.error())));
    return kFaulty;
  }
  if (!written.ok()) return events_lost(written.error(), asked_.folder, events_file_, outcome);
  if (!outcome.ok()) return outcome.error();
  signals_.end_is_known();
  if (first()) viewers_.ended(*outcome, prepared_->workload);
  return exit_of(*outcome);
}

}  // namespace

Result<int> run_rank(const RankRequest& request, const RankViewers& viewers, const RunScene& scene) {
  outlive_failed_writes();
  const RankIdentity identity = TRY(rank_identity_from_environment());
  const std::unique_ptr<Clock> wrong = TRY(injected_clock(request.inject, identity.place.rank, scene.clock));
  RankRun run(request, viewers, scene, identity, wrong != nullptr ? *wrong : scene.clock);
  TRY(run.take_seat());
  TRY(run.prepare_job());
  TRY(run.take_folder());
  TRY(run.connect());
  TRY(run.ask());
  TRY(run.open_events());
  return run.train();
}

}  // namespace systole
