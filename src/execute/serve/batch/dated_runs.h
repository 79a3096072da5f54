#pragma once
// The runs of a scheduled job: each in a folder of its own beside the others, named by the time at which it was due. A
// run is finished when its journal says so, which comes after the output and all that is made of it: what was moved
// away later is not made again.
//
//   vectors/2026-11-28T02-30+0100/vectors.jsonl        output: vectors/vectors.jsonl

#include <functional>
#include <optional>
#include <string>

#include "describe/spec/cron_schedule.h"
#include "ground/base/clock.h"
#include "ground/store/store.h"

namespace systole {

class DatedRuns {
 public:
  // Borrows both. `folder`: of all runs; `file`: of the output in each, "vectors.jsonl".
  DatedRuns(const CronSchedule& schedule, Store& folder, std::string file)
      : schedule_(schedule), folder_(folder), file_(std::move(file)) {}

  const CronSchedule& schedule() const { return schedule_; }
  // The newest run, if it was begun and not finished. Errors: those of the store.
  Result<std::optional<std::int64_t>> cut_short() const;
  // The run that is to be started now: the one that was due last, if it may still start and is not finished.
  Result<std::optional<std::int64_t>> due(std::int64_t now) const;

 private:
  Result<bool> is_finished(std::int64_t due) const;

  const CronSchedule& schedule_;
  Store& folder_;
  std::string file_;
};

struct DatedRunner {
  // Runs the one that is due, or goes on with it. False: asked to stop.
  std::function<Result<bool>(std::int64_t due, bool goes_on)> run = {};
  std::function<void(std::int64_t due, const Error& error)> failed = {};
  std::function<void(std::int64_t next)> waits = {};  // told once for each
  std::function<bool()> stops = {};                   // asked every second
};

// Runs at the times of the schedule, one after the other, until asked to stop: first the one that was cut short. A run
// that fails is not tried again before the next one is due. Errors: those of the store.
Status follow_schedule(const DatedRuns& runs, const DatedRunner& runner, Clock& clock);

}  // namespace systole
