#pragma once
// The training loop of one rank. It executes the Program's schedules, hands in each step's scalars, saves, evaluates
// and stops; it prints nothing, knows no price, and reads no clock but the one it is given. The ranks of a mesh each
// run it, over the same batches in the same order; what a clock or a signal decides, rank 0 decides for all.
//
// A step: rows → inputs of the arena → schedule "train" → loss and norm → event. A device that runs ahead is given the
// next step's rows and is asked for that step before the loss of this one is read, so that it never waits for the host:
// but for steps after which something looks at the state (an evaluation, a save, the end), or which are timed. So are
// an evaluation's rows. On other devices, from the fourth step on, the step's thread allocates nothing of ours.
// Checkpoints are written by a thread of their own from the staging that the "snapshot" schedule filled.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "execute/checkpoint/async_save.h"
#include "execute/runtime/communicator.h"
#include "execute/runtime/executor.h"
#include "execute/train/divergence.h"
#include "execute/train/feed.h"
#include "execute/train/host_state.h"
#include "execute/train/job.h"
#include "execute/train/ledger.h"
#include "execute/train/rate.h"
#include "execute/train/replay.h"
#include "execute/train/source.h"
#include "execute/train/waits.h"

namespace systole {

class PhaseObserver;

// Places where tests and rehearsals hold the run up or make it fail.
struct TrainHooks {
  std::function<void(std::int64_t step)> in_compute, in_backward, in_logging, in_checkpoint;  // on the step's thread
  checkpoint::PhaseHook on_save_phase;  // on the thread of the phase
  // "read", "compute", "update", …: when the step's thread enters one; "wait": for a save that is still being written.
  std::function<void(const char* phase)> on_phase;
  // The gradients of a step are there, and neither reduced nor used.
  std::function<void(std::int64_t step, ReplayCheck& gradients)> on_gradients;
  std::function<Status(std::int64_t step)> after_step;  // its values are still there
  std::function<void(std::int64_t step, const Action& action, const Function& function)> on_action;  // as it begins
};

// How much of its machines' time a run may take, where that is bounded: it stops before it would take more.
struct TimeBudget {
  Seconds all;
  std::function<Seconds()> left;
};

struct TrainerParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  checkpoint::Folder checkpoints;
  std::unique_ptr<BatchSource> source;
  // A fresh pass over the held-out rows; empty when there are none.
  std::function<Result<std::unique_ptr<BatchSource>>()> held_out;
  std::function<bool()> stop_requested;  // by a signal
  // How much of the notice is left once a stop was requested; empty: as long as it takes.
  std::function<Seconds()> time_to_stop;
  std::optional<TimeBudget> budget;      // rank 0's counts
  std::int64_t vocabulary = 0;           // to check ids; 0: no tokens
  Communicator* communicator = nullptr;  // with the other ranks of the Program's mesh; null: there are none
  std::int64_t device = 0;               // this rank's number in the mesh
  checkpoint::SaveGroup save_group;      // which of the writers of its checkpoints this rank is
  std::string numerics;                  // fingerprint of what the bits depend on; kept with checkpoints
  std::string isa;                       // the instructions among it, to pin another machine to; kept too
  Node executables;                      // what the functions were compiled to, for the same reason; kept too
  TrainHooks hooks;
  StageWatch* stages = nullptr;  // told of what the rank does; null: nobody looks
};

// What goes with the tensors in a checkpoint, so that a run goes on as if nothing had been.
struct TrainState {
  std::int64_t step = 0;     // done
  std::int64_t tokens = 0;   // labels seen
  std::int64_t skipped = 0;  // updates left out because the gradient was not finite
  Seconds trained;           // what the steps took, from the first row asked for to the last line logged: train.time
  LossTrend trend;
  Node cursor;  // of the source, where the next batch begins
};
Node to_node(const TrainState& state);
Result<TrainState> state_from(const Node& extra);

enum class Ending { finished, stopped, diverged };

struct TrainOutcome {
  Ending ending = Ending::finished;
  bool budget_used = false;  // why it stopped
  std::string detail;        // of a divergence: the step, and what to try, best first
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

  // Runs to the end, a stop, or a divergence. Errors: of data, of the device, and of saving (no_space, io), which say
  // from which checkpoint the run can go on: a save that failed leaves the one before as it was.
  Result<TrainOutcome> run();

  // Bits per byte and loss over the held-out rows: at most `batches` of them, 0 for all.
  Result<Evaluated> evaluate(std::int64_t batches);

 private:
  // What a device that runs ahead was asked for and has not yet done. Reused.
  struct Asked {
    std::vector<StartedAction> actions;
    std::vector<std::array<std::byte, 8>> scalars;  // on their way to the host
    std::vector<DeviceEvent> reads;                 // of `scalars`, which stay until these are done
  };
  // A step that is not yet told of.
  struct StartedStep {
    StepEnded ended;  // as far as it is known
    Seconds began;
    Asked asked;
  };
  // Held-out rows of which the loss is not yet known.
  struct StartedEvaluation {
    std::int64_t labels = 0, bytes = 0;
    Asked asked;
  };
  Status start_step(StartedStep& started);
  Status end_step(StartedStep& started);
  struct Scalar {
    int value = -1, slot = 0;
  };
  void read_ahead(Asked& asked, std::span<const Scalar> scalars);
  Status wait_for(Asked& asked);
  // REQUIRES: where the device runs ahead it was the nth to be read, and was waited for.
  double taken(const Asked& asked, std::size_t nth, const Scalar& scalar);
  Status take_results(StartedStep& started);
  Result<bool> start_evaluation(BatchSource& rows, StartedEvaluation& started);
  Result<bool> goes_on_at_once();
  enum class StopCause : std::uint8_t { none, asked, budget };
  Result<StopCause> stop_cause();
  Seconds taken_by_next() const;
  void tell_budget();
  Status run_step(std::int64_t step);
  Status look_for_bad(std::int64_t step);
  Status save(bool wait);
  Status finish_save(bool wait);
  Status wait_for_save_before();
  Error save_failed(Error why) const;
  Result<bool> is_time_to_save(const TrainOutcome& outcome);
  std::optional<double> metric() const;
  Progress progress() const;  // as the next step begins
  Result<bool> is_over();
  Result<bool> is_due(const Interval& interval, Seconds last_time);
  template <typename T>
  Result<T> as_rank_0(T mine);
  void emit(EventBody body);

  const Job& job_;
  Executor& executor_;
  TrainerParts parts_;
  TimeLedger& ledger_;
  TrainState state_;
  std::int64_t asked_step_ = 0, asked_tokens_ = 0;  // of the steps that were started, of which state_ may know one less
  Feed feed_, evaluation_feed_;
  std::unique_ptr<PhaseObserver> observer_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  checkpoint::SaveRequest request_;  // reused
  const Schedule& train_;
  const Schedule* evaluate_;
  const Schedule* snapshot_;  // null, and no host_state_: training waits for its checkpoints
  HostState host_state_;
  ReplayCheck replay_;
  bool looked_for_bad_ = false;
  bool ahead_ = false;  // a step may be started before the one before it has ended
  std::array<StartedStep, 2> steps_;
  std::array<StartedEvaluation, 2> evaluations_;
  // What a step gives; of many slots their sum, of choices that it does not count, zero.
  struct Results {
    double loss = 0, norm = 0, skipped = 0, choices = 0, dropped = 0;
  };
  std::vector<Scalar> step_scalars_;
  std::vector<double Results::*> results_of_;  // per scalar
  Scalar evaluate_loss_;
  checkpoint::SaveOptions save_options_;
  Seconds opened_;          // when the run was opened
  Seconds trained_to_;      // up to when state_.trained counts
  std::int64_t saves_ = 0;  // begun
  std::int64_t skips_in_row_ = 0;
  std::int64_t saved_step_ = -1, saving_step_ = -1;
  Seconds snapshot_time_, write_began_;
  Seconds step_time_, evaluation_time_;  // the longest of this process
  Seconds save_time_;                    // the same; zero before the first
  double told_of_budget_ = 0;            // the share of it that is used, when somebody was last told
  Seconds last_save_time_, last_evaluation_time_;
  std::optional<double> evaluated_loss_;  // of evaluated_step_, over as many rows as every evaluation takes
  std::int64_t evaluated_step_ = -1;
  WaitWatch waits_;
  std::optional<StepEnded> last_;
};

}  // namespace systole
