#include "predict/perf/stages_time.h"

#include <algorithm>

#include "predict/schedule/program_actions.h"

namespace systole {

Seconds time_of_stages(std::span<const StageOfTime> stages, std::string_view schedule, bool serial) {
  std::vector<const Program*> programs;
  std::vector<Seconds> durations;
  for (const StageOfTime& stage : stages) {
    programs.push_back(stage.program);
    durations.insert(durations.end(), stage.estimate->of_functions.begin(), stage.estimate->of_functions.end());
  }
  return SchedulePlayer(actions_of(programs, schedule, serial)).time(durations);
}

Estimate among_stages(std::span<const StageOfTime> stages, std::size_t stage, bool serial) {
  Estimate result = *stages[stage].estimate;
  for (ScheduleEstimate& schedule : result.schedules) {
    const Program& program = *stages[stage].program;
    if (!has_transfers(program, program.schedule_named(schedule.name))) continue;
    const Seconds all = time_of_stages(stages, schedule.name, serial);
    schedule.by_function.emplace_back("stages", std::max(Seconds(), all - schedule.time));
    schedule.time = std::max(schedule.time, all);
  }
  return result;
}

}  // namespace systole
