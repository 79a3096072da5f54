#include "operate/run/rank_threads.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "ground/process/machine.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"

namespace systole {
namespace {

// State of one rank besides its job.
struct RankThread {
  PlannedRun* prepared = nullptr;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Store> records;  // for its events
  std::unique_ptr<EventFile> events;
  std::optional<TimeLedger> ledger;
  std::optional<Result<TrainOutcome>> outcome;
};

Status open_records(RankThread& rank, const RunFolder& folder, std::int64_t number, Clock& clock) {
  const std::string dir = fmt::format("ranks/{}", number);
  TRY(make_dirs_synced(*folder.store, dir));
  rank.records = TRY(open_posix_store(folder.path + "/" + dir));
  rank.events = TRY(EventFile::open(*rank.records, TRY(next_event_file(*rank.records))));
  rank.ledger.emplace(clock, Category::startup);
  return {};
}

// A rank that fails also ends the waits of the others.
void run_one(RankThread& rank, RunFolder& folder, const RunRequest& request, Clock& clock, TimeLedger& ledger,
             EventSink& events) {
  try {
    rank.outcome = run_job(*rank.prepared, folder, request, clock, ledger, events);
  } catch (const Failure& failure) { rank.outcome = failure.error(); }
  if (!rank.outcome->ok())
    rank.communicator->abort(fmt::format("rank {}: {}", request.role.rank, rank.outcome->error().message));
}

// The outcome of rank 0, or the first cause of a failure; not that another rank had ended.
Result<TrainOutcome> outcome_of(std::vector<RankThread>& ranks) {
  const RankThread* failed = nullptr;
  for (const RankThread& rank : ranks) {
    if (rank.outcome->ok()) continue;
    if (failed == nullptr || failed->outcome->error().kind == ErrorKind::interrupted) failed = &rank;
  }
  if (failed == nullptr) return std::move(*ranks[0].outcome);
  Error cause = failed->outcome->error();
  cause.message = fmt::format("rank {}: {}", failed - ranks.data(), cause.message);
  return cause;
}

}  // namespace

Workload for_ranks(const Workload& workload) {
  Workload each = workload;
  if (!each.resources.threads)
    each.resources.threads =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(allowed_cores()) / workload.num_devices());
  return each;
}

Result<TrainOutcome> run_in_threads(PlannedRun& first, const PrepareOptions& preparing, RunFolder& folder,
                                    const RunRequest& request, Clock& clock, TimeLedger& ledger, EventSink& events) {
  const Mesh& mesh = first.job.program->mesh;
  std::vector<PlannedRun> others;
  others.reserve(static_cast<std::size_t>(mesh.num_devices()));
  std::vector<RankThread> ranks(static_cast<std::size_t>(mesh.num_devices()));
  std::vector<std::unique_ptr<Transport>> transports = TRY(loopback(static_cast<std::int32_t>(mesh.num_devices())));
  checkpoint::SaveGroup group;
  group.world = static_cast<int>(mesh.num_devices());
  group.launch = fmt::format("{}-{}", host_name(), getpid());
  std::erase_if(group.launch, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-'; });
  group.clock = &clock;
  const CheckpointHome home = TRY(open_home(folder.path, first.workload.checkpoint));
  TRY(checkpoint::prepare(home.folder));
  TRY(checkpoint::claim(home.folder, group));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].transport = std::move(transports[r]);
    ranks[r].communicator = TRY(make_communicator(*ranks[r].transport, mesh));
    ranks[r].prepared = &first;
    if (r == 0) continue;
    PrepareOptions own = preparing;
    own.rank = static_cast<std::int64_t>(r);
    own.alone = true;
    others.push_back(TRY(prepare(first.workload, own, clock)));
    ranks[r].prepared = &others.back();
    TRY(open_records(ranks[r], folder, static_cast<std::int64_t>(r), clock));
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RunRequest own;
    if (r == 0) own = request;
    own.folder = request.folder;
    own.resume = request.resume;
    own.command = request.command;
    own.role = {static_cast<std::int64_t>(r), ranks[r].communicator.get(), group};
    own.role.group.rank = static_cast<int>(r);
    threads.emplace_back([&, r, own = std::move(own)] {
      run_one(ranks[r], folder, own, clock, r == 0 ? ledger : *ranks[r].ledger, r == 0 ? events : *ranks[r].events);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (RankThread& rank : ranks) {
    if (rank.events != nullptr) TRY(rank.events->close());
  }
  return outcome_of(ranks);
}

}  // namespace systole
