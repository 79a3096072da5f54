#pragma once
// Looks for newer checkpoints of the run that is served, and has them served. A checkpoint is read and verified to its
// last byte first, while the old one is served. A damaged one is told once, and the old one goes on.
//
//   CheckpointFollower follower(served, serving, {.which = Followed::latest, .warning = ..., .served = ...});
//   follower.start(Seconds(5));       // looks every 5 s, on a thread of its own
//   follower.look_now();              // and at once: also at what was found damaged before
//
// If a checkpoint that was whole cannot be loaded, the one that was served is loaded again; if that is gone (a run
// removes its old ones), the newest followed one that is whole; without one, serving fails. Unless the checkpoint is
// gone before the first byte is loaded: then nothing changes.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "execute/serve/rank_steps.h"
#include "execute/serve/serving_thread.h"
#include "operate/run/served_model.h"

namespace systole {

// Fills an engine of a run's model with another of its checkpoints; a rank's engine with its part of it. Errors: as
// load_engine.
Status load_checkpoint(Engine& engine, const ServedModel& model, const checkpoint::Checkpoint& from);
// The same by all ranks of the engine, if it leads others. Errors also: as LeadingSteps::load.
Status load_checkpoint_on_ranks(Engine& engine, const ServedModel& model, const checkpoint::Checkpoint& from);
// What rank 0 sends of it. Errors: invalid: this rank has other weights of the step; those of opening and loading it.
Status load_ranked(Engine& engine, const ServedModel& model, const RankedWeights& weights);

enum class Followed { latest, blessed };  // blessed: by `systole ckpt bless`

struct FollowOptions {
  Followed which = Followed::latest;
  // Both are set, and called from the follower's thread and the engine's. They may outlive the follower.
  std::function<void(const Error&)> warning;
  std::function<void(std::int64_t step)> served;  // another step is served from now on
};

class CheckpointFollower {
 public:
  // REQUIRES: the model is of a run; it and `serving`, which has its step, outlive this and the calls of `options`.
  CheckpointFollower(const ServedModel& model, ServingThread& serving, FollowOptions options);
  ~CheckpointFollower();  // a verification under way ends with the chunk that is read
  CheckpointFollower(const CheckpointFollower&) = delete;
  CheckpointFollower& operator=(const CheckpointFollower&) = delete;

  // Looks once, on this thread; returns when a newer one is verified and handed to the serving thread. `again`: also at
  // those that were refused. REQUIRES: not started.
  void look(bool again = false);
  // Once.
  void start(Seconds every);
  void look_now();  // REQUIRES: started

 private:
  class Source;  // shared with the calls on the engine's thread
  Status find_newer();
  Status verify(std::int64_t step) const;
  void refuse(std::int64_t step, const Error& reason);
  void tell(const Error& error);
  void run(Seconds every);

  std::shared_ptr<const Source> source_;
  ServingThread& serving_;
  std::optional<std::int64_t> asked_;  // the last that was handed over
  std::set<std::int64_t> damaged_;
  std::set<std::string> told_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool now_ = false;  // guarded by mutex_
  std::atomic<bool> ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace systole
