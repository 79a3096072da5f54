#pragma once
// The steps of an engine whose model is cut over ranks (describe/partition/serving_layouts.h). Rank 0 has the scheduler
// and the sampler; it sends each step's function and inputs (tokens, page tables, positions) to the others, and all run
// the same schedule of the same Program. Logits come to all by the Program's own collectives; rank 0 alone reads them.
//
//   header   i32: the number of the schedule; kBeat, to show that rank 0 is there; kLoad; or kEnd
//   inputs   all inputs of its function, in order of the ports, in one broadcast
//   load     after kLoad: which weights; then, in rounds, how each rank's load goes, until none is under way
//
// A broadcast ends by the transport's patience. Rank 0 sends a beat when there was no step for kBeatEvery, which all
// ranks answer: so between steps, too, each learns within the patience that another hangs, and sooner that one is gone.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "execute/runtime/communicator.h"
#include "execute/runtime/executor.h"

namespace systole {

// The weights of a run's checkpoint, and the hash of what is in it: ranks of several machines may have other files.
struct RankedWeights {
  std::int64_t step = 0;
  std::uint64_t hash = 0;
};

// Rank 0's side. Thread safety: all of it; steps wait for a beat under way.
class LeadingSteps {
 public:
  static constexpr Seconds kBeatEvery{1.0};

  // `ranks`: which the engine's device is connected with. It must outlive this.
  explicit LeadingSteps(Communicator& ranks, Seconds beat_every = kBeatEvery);
  ~LeadingSteps();  // the others end, if no call has failed
  LeadingSteps(const LeadingSteps&) = delete;
  LeadingSteps& operator=(const LeadingSteps&) = delete;

  // Sends the step, and runs it here. Errors: those of the communicator and the device; all that follow are the same.
  Status run(Executor& executor, const Schedule& schedule);
  // Has all ranks load these weights, this one by `own`, and waits however long that takes. Calls `own` on another thread.
  // Errors: of a load, with its rank: each rank's parameters are undefined, and the ranks go on; those of the communicator.
  Status load(const RankedWeights& weights, const std::function<Status()>& own);
  // Why the ranks cannot go on, if they cannot: of a step or of a beat.
  std::optional<Error> failure() const;

 private:
  Status send(std::int32_t header, std::span<std::byte> inputs);
  Status keep(Status status);
  void beat(Seconds every);

  Communicator& ranks_;
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;  // guarded by failure_mutex_, so that nobody waits for a step to ask
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  std::vector<std::byte> inputs_;  // guarded by mutex_, as what follows
  bool stepped_ = false;           // since the last beat
  bool ends_ = false;
  std::thread beats_;  // last: it uses the others
};

// The other ranks' side: runs what rank 0 sends until it ends. `stays`: asked at each header; false leaves, which ends
// the others with an error. `load`: fills the executor with this rank's part of the weights; on another thread.
// Errors: as LeadingSteps::run; interrupted: it left.
using LoadRankedWeights = std::function<Status(const RankedWeights&)>;
Status follow_steps(Executor& executor, Communicator& ranks, const std::function<bool()>& stays = {},
                    const LoadRankedWeights& load = {});

}  // namespace systole
