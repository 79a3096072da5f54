#pragma once
// The training loop of one rank. It executes the Program's schedules, hands in each step's scalars, saves, evaluates
// and stops; it prints nothing, knows no price, and reads no clock but the one it is given.
//
// A step: rows → inputs of the arena → schedule "train" → loss and norm → event. From the fourth step on the step's
// thread allocates nothing of ours. Checkpoints are written by a thread of their own from the staging that the
// "snapshot" schedule filled.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "execute/checkpoint/async_save.h"
#include "execute/runtime/executor.h"
#include "execute/train/feed.h"
#include "execute/train/job.h"
#include "execute/train/ledger.h"
#include "execute/train/rate.h"
#include "execute/train/source.h"

namespace systole {

// Places where tests and rehearsals hold the run up or make it fail.
struct TrainHooks {
  std::function<void(std::int64_t step)> in_compute, in_logging, in_checkpoint;  // on the step's thread
  checkpoint::PhaseHook on_save_phase;                                           // on the thread of the phase
  std::function<void(const char* phase)> on_phase;  // "read", "compute", "update", …: when the step's thread enters one
};

struct TrainerParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  checkpoint::Folder checkpoints;
  std::unique_ptr<BatchSource> source;
  // A fresh pass over the held-out rows; empty when there are none.
  std::function<Result<std::unique_ptr<BatchSource>>()> held_out;
  std::function<bool()> stop_requested;  // by a signal
  std::int64_t vocabulary = 0;           // to check ids; 0: no tokens
  std::string numerics;                  // fingerprint of what the bits depend on; kept with checkpoints
  TrainHooks hooks;
};

// What goes with the tensors in a checkpoint, so that a run goes on as if nothing had been.
struct TrainState {
  std::int64_t step = 0;     // done
  std::int64_t tokens = 0;   // labels seen
  std::int64_t skipped = 0;  // updates left out because the gradient was not finite
  Seconds trained;           // time that counts against train.time
  double lowest_loss = 0;    // of a step; 0: none yet
  Node cursor;               // of the source, where the next batch begins
};
Node to_node(const TrainState& state);
Result<TrainState> state_from(const Node& extra);

enum class Ending { finished, stopped, diverged };

struct TrainOutcome {
  Ending ending = Ending::finished;
  std::string detail;  // of a divergence: the step, and what to try, best first
  TrainState state;
  bool saved = false;                   // the state is in a checkpoint
  std::optional<Evaluated> evaluation;  // the last, over all that was asked for
};

class Trainer {
 public:
  // REQUIRES: job, executor and parts outlive the trainer; parameters and state are in the executor (initialize or
  // load_state).
  Trainer(const Job& job, Executor& executor, TrainerParts parts, TimeLedger& ledger, TrainState from);
  ~Trainer();

  // Runs to the end, a stop, or a divergence. Errors: of data, of saving (no_space, io), of the device.
  Result<TrainOutcome> run();

  // Bits per byte and loss over the held-out rows: at most `batches` of them, 0 for all.
  Result<Evaluated> evaluate(std::int64_t batches);

 private:
  class PhaseObserver;
  Status one_step();
  Status save(bool wait);
  Status finish_save(bool wait);
  Result<std::optional<std::string>> divergence(const StepEnded& step);
  Progress progress() const;
  bool is_over() const;
  bool is_due(const Interval& interval, std::int64_t& last_step, Seconds& last_time);
  double read_scalar(int value, int slot);
  void emit(EventBody body);

  const Job& job_;
  Executor& executor_;
  TrainerParts parts_;
  TimeLedger& ledger_;
  TrainState state_;
  Feed feed_, evaluation_feed_;
  std::unique_ptr<PhaseObserver> observer_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  checkpoint::SaveRequest request_;  // reused
  const Schedule& train_;
  const Schedule* evaluate_;
  const Schedule& snapshot_;
  int loss_ = -1, norm_ = -1, skipped_ = -1, evaluate_loss_ = -1;
  Seconds opened_, started_;  // when the run was opened; when stepping began
  Seconds trained_before_;    // by earlier processes
  std::int64_t first_step_ = 0;
  std::int64_t skips_in_row_ = 0;
  std::int64_t saved_step_ = -1, saving_step_ = -1;
  Seconds snapshot_time_, write_began_;
  std::int64_t last_save_step_ = 0, last_evaluation_step_ = 0;
  Seconds last_save_time_, last_evaluation_time_;
  std::optional<double> best_metric_;
  std::optional<StepEnded> last_;
};

}  // namespace systole
