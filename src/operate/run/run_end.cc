#include "operate/run/run_end.h"

#include "ground/base/exit_code.h"
#include "operate/render/quote.h"

namespace systole {

int exit_of(const TrainOutcome& outcome) {
  switch (outcome.ending) {
    case Ending::finished: return kExitDone;
    case Ending::stopped:
      if (outcome.budget_used) return kExitOverBudget;
      return outcome.saved ? kExitSaved : kExitNotSaved;
    case Ending::diverged: return kExitNo;
  }
  return kExitNo;
}

Error events_lost(const Error& why, const std::string& folder, const std::string& file,
                  const Result<TrainOutcome>& outcome) {
  const std::string state = outcome.ok() && outcome->saved
                                ? fmt::format("the state of step {} is saved", outcome->state.step)
                                : "no checkpoint was written after it";
  return error(why.kind, "events of the run could not be written: {}; {}", why.message, state)
      .at({folder + "/" + file})
      .hinted(fmt::format("make room, then: systole resume {}", shell_word(folder)));
}

Error events_refused(Error why, const std::string& folder, const std::string& file) {
  why.message = fmt::format(
      "events of this run cannot be written: {}; it goes on until its next checkpoint or its end, which need them",
      why.message);
  return std::move(why).at({folder + "/" + file});
}

std::string stopping_text(std::int64_t step) { return fmt::format("stopping: saving step {}", step); }

std::string goes_on_text(std::int64_t step) {
  return step > 0 ? fmt::format("it goes on from the checkpoint of step {}", step)
                  : "there is no checkpoint to go on from: it begins from the start";
}

Result<TrainOutcome> caught(const std::function<Result<TrainOutcome>()>& run) {
  try {
    return run();
  } catch (const Failure& failure) { return failure.error(); }
}

}  // namespace systole
