#pragma once
// The training loop of one rank. It runs the Program's schedules, writes each step's scalars, saves, evaluates and
// stops. It prints nothing, knows no prices, and reads only the clock it is given. All ranks of a mesh run it over the
// same batches in the same order; decisions that depend on a clock or a signal are rank 0's.
//
// A step: rows → inputs of the arena → schedule "train", or that of the rows' length → loss and norm → event. On a
// device that runs ahead, the next step is fed and started before the loss of this one is read, so the device never
// waits for the host. Exceptions: steps after which the state is read (an evaluation, a save, the end), and timed runs.
// Evaluations run ahead in the same way. On other devices, from the fourth step on, the step's thread allocates nothing
// of ours, but for the first step of each length of rows. A separate thread writes checkpoints from the staging that
// the "snapshot" schedule filled.

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
#include "execute/train/batch_feeder.h"
#include "execute/train/divergence.h"
#include "execute/train/host_state.h"
#include "execute/train/rate.h"
#include "execute/train/replay.h"
#include "execute/train/source.h"
#include "execute/train/time_ledger.h"
#include "execute/train/training_job.h"
#include "execute/train/waits.h"

namespace systole {

class PhaseObserver;

// Hooks where tests and rehearsals delay the run or make it fail.
struct TrainHooks {
  std::function<void(std::int64_t step)> in_compute, in_backward, in_logging, in_checkpoint;  // on the step's thread
  checkpoint::PhaseHook on_save_phase;  // on the thread of the phase
  // When the step's thread enters a phase: "read", "compute", "update", …; "wait": for a save in progress.
  std::function<void(const char* phase)> on_phase;
  // The gradients of a step are computed, but neither reduced nor used.
  std::function<void(std::int64_t step, ReplayCheck& gradients)> on_gradients;
  std::function<Status(std::int64_t step)> after_step;  // its values are still in the arena
  std::function<void(std::int64_t step, const Action& action, const Function& function)> on_action;  // at its beginning
  std::function<void(std::int64_t step)> on_stop;  // after a stop request, before the save of this step
};

// The machine time that a run may use, where that is bounded: it stops before it would use more.
struct TimeBudget {
  Seconds all;
  std::function<Seconds()> left;
};

struct TrainerParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  checkpoint::Folder checkpoints;
  std::unique_ptr<BatchSource> source;
  // A new pass over the held-out rows; empty if there are none.
  std::function<Result<std::unique_ptr<BatchSource>>()> held_out;
  // Of a mixture: the names of its sources, and the source of each batch of such a pass. Empty: not by source.
  std::vector<std::string> held_out_names;
  std::vector<std::size_t> held_out_batches;
  std::function<bool()> stop_requested;  // by a signal
  // Remaining notice after a stop request; empty: unlimited.
  std::function<Seconds()> time_to_stop;
  std::optional<TimeBudget> budget;      // that of rank 0 is used
  std::int64_t vocabulary = 0;           // for checking ids; 0: no tokens
  Communicator* communicator = nullptr;  // of the Program's mesh; null: a single rank
  std::int64_t device = 0;               // this rank's number in the mesh
  checkpoint::SaveGroup save_group;      // this rank's place among the writers of its checkpoints
  std::string numerics;                  // fingerprint of all that the bits depend on; kept in checkpoints
  std::string isa;                       // the instruction set in it, to pin another machine to; kept too
  Node executables;                      // hashes of the compiled functions, for the same reason; kept too
  TrainHooks hooks;
  StageWatch* stages = nullptr;  // null: no time accounting per stage
};

// Saved beside the tensors of a checkpoint, so that a run resumes exactly.
struct TrainState {
  std::int64_t step = 0;     // steps done
  std::int64_t tokens = 0;   // labels seen
  std::int64_t skipped = 0;  // updates skipped because the gradient was not finite
  Seconds trained;           // duration of the steps, from the first row request to the last line logged: train.time
  LossTrend trend;
  Node cursor;  // of the source: position of the next batch
};
Node to_node(const TrainState& state);
Result<TrainState> state_from(const Node& extra);

enum class Ending { finished, stopped, diverged };

struct TrainOutcome {
  Ending ending = Ending::finished;
  bool budget_used = false;  // it stopped because the budget is used
  std::string detail;        // of a divergence: the step, and remedies, best first
  TrainState state;
  bool saved = false;                                  // the state is in a checkpoint
  std::optional<Evaluated> evaluation;                 // the final one, over all held-out rows
  std::vector<std::pair<std::string, Seconds>> waits;  // for rows, by stage of the reader; empty: not counted
  std::vector<std::int64_t> steps_of_shapes;           // that this process did, by shape of the Job; empty: one shape
};

class Trainer {
 public:
  // REQUIRES: job, executor and parts outlive the trainer; parameters and state are in the executor (initialize or
  // load_state).
  Trainer(const Job& job, Executor& executor, TrainerParts parts, TimeLedger& ledger, TrainState from);
  ~Trainer();

  // Runs to the end, a stop, or a divergence.
  // Errors: of data, of the device, and of saving (no_space, io); they name the checkpoint from which the run can go
  // on. A failed save leaves the checkpoint before it intact.
  Result<TrainOutcome> run();

  // Bits per byte and loss over at most `batches` batches of held-out rows; 0: all.
  Result<Evaluated> evaluate(std::int64_t batches);

 private:
  // Work that was started on a device that runs ahead and is not yet done. Reused.
  struct InFlight {
    std::vector<StartedAction> actions;
    std::vector<std::array<std::byte, 8>> scalars;  // being copied to the host
    std::vector<DeviceEvent> reads;                 // of `scalars`, which must stay until these are done
  };
  // A step whose event is not yet emitted.
  struct StartedStep {
    StepEnded ended;  // as far as known
    Seconds began;
    InFlight in_flight;
  };
  // Held-out rows whose loss is not yet known.
  struct StartedEvaluation {
    std::int64_t labels = 0, bytes = 0;
    InFlight in_flight;
  };
  // What a step of rows of one length takes. The last one's inputs have no prefix.
  struct Shape {
    std::int64_t length = 0, microbatch_rows = 0;
    BatchFeeder feed;
    const Schedule* train = nullptr;
    ReplayCheck replay;
    std::int64_t steps = 0;
  };
  std::vector<Shape> shapes_of(const Job& job, Executor& executor) const;
  Shape& shape_of(const StepBatch& batch);
  Status start_step(StartedStep& started);
  Status end_step(StartedStep& started);
  struct Scalar {
    int value = -1, slot = 0;
  };
  void read_ahead(InFlight& in_flight, std::span<const Scalar> scalars);
  Status wait_for(InFlight& in_flight);
  // The value of a scalar. REQUIRES: if the device runs ahead, it was the nth of read_ahead, and wait_for has returned.
  double taken(const InFlight& in_flight, std::size_t nth, const Scalar& scalar);
  Status take_results(StartedStep& started);
  Result<bool> start_evaluation(BatchSource& rows, StartedEvaluation& started);
  Result<bool> goes_on_at_once();
  enum class StopCause : std::uint8_t { none, asked, budget };
  Result<StopCause> stop_cause();
  Seconds taken_by_next() const;
  void tell_budget();
  Status run_step(std::int64_t step, Shape& shape);
  Status look_for_bad(std::int64_t step);
  Status save(bool wait);
  Status finish_save(bool wait);
  Status wait_for_save_before();
  Error save_failed(Error why) const;
  Result<bool> is_time_to_save(const TrainOutcome& outcome);
  std::optional<double> metric() const;
  Progress progress() const;  // at the beginning of the next step
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
  std::int64_t asked_step_ = 0, asked_tokens_ = 0;  // started, one step ahead of state_ at most
  std::vector<Shape> shapes_;
  Shape* shape_ = nullptr;  // of the last started step
  BatchFeeder evaluation_feed_;
  std::unique_ptr<PhaseObserver> observer_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  checkpoint::SaveRequest request_;  // reused
  const Schedule* evaluate_;
  const Schedule* snapshot_;  // null and no host_state_: training waits for its checkpoints
  HostState host_state_;
  bool looked_for_bad_ = false;
  bool ahead_ = false;  // a step may start before the previous one has ended
  std::array<StartedStep, 2> steps_;
  std::array<StartedEvaluation, 2> evaluations_;
  // Results of a step: summed over slots; choices are 0 if it does not count them.
  struct Results {
    double loss = 0, norm = 0, skipped = 0, choices = 0, dropped = 0;
  };
  std::vector<Scalar> step_scalars_;
  std::vector<double Results::*> results_of_;  // per scalar
  Scalar evaluate_loss_;
  checkpoint::SaveOptions save_options_;
  Seconds opened_;          // when the run was opened
  Seconds trained_to_;      // end of the time counted in state_.trained
  std::int64_t saves_ = 0;  // begun
  std::int64_t skips_in_row_ = 0;
  std::int64_t saved_step_ = -1, saving_step_ = -1;
  Seconds snapshot_time_, write_began_;
  Seconds step_time_, evaluation_time_;  // longest so far in this process
  Seconds save_time_;                    // the same; zero before the first
  double told_of_budget_ = 0;            // used share at the last note
  Seconds last_save_time_, last_evaluation_time_;
  std::optional<double> evaluated_loss_;  // of evaluated_step_, over the rows that every evaluation takes
  std::int64_t evaluated_step_ = -1;
  WaitWatch waits_;
  std::optional<StepEnded> last_;
};

}  // namespace systole
