#include "predict/perf/estimate.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"
#include "predict/perf/overlapped_time.h"
#include "predict/perf/utilisation.h"
#include "predict/schedule/program_actions.h"

namespace systole {
namespace {

using FlopsByType = std::map<DType, std::int64_t>;

void add_contractions(const Graph& graph, std::int64_t times, FlopsByType& flops) {
  for (const GraphNode& node : graph.nodes()) {
    if (is(node, "repeat")) {
      add_contractions(node.regions[0], times * node.attrs.get_int("count"), flops);
    } else if (is(node, "contract")) {
      flops[graph.type(node.operands[0]).dtype] += times * work_of(graph, node).flops;
    }
  }
}

ScheduleEstimate estimate_schedule(const Program& program, const Schedule& schedule,
                                   const std::vector<TimeByClass>& times, const std::vector<Seconds>& elapsed) {
  ScheduleEstimate result;
  result.name = schedule.name;
  result.time = SchedulePlayer(actions_of(schedule)).time(elapsed);
  result.work = work_of(program, schedule);
  FlopsByType contractions;
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    const auto acts = std::count_if(schedule.actions.begin(), schedule.actions.end(),
                                    [&](const Action& action) { return action.function == static_cast<int>(f); });
    if (acts == 0) continue;
    const TimeByClass time = times[f] * static_cast<double>(acts);
    result.busy += time;
    result.by_function.emplace_back(program.functions[f].name, elapsed[f] * static_cast<double>(acts));
    add_contractions(program.functions[f].graph, acts, contractions);
  }
  std::int64_t most = 0;
  for (const auto& [dtype, flops] : contractions) {
    if (flops <= most) continue;
    most = flops;
    result.matmul_type = dtype;
  }
  return result;
}

// Its scratch and its ports.
Bytes touched_by(const Program& program, const Function& function) {
  Bytes touched = function.scratch;
  std::set<int> values;
  for (const std::vector<Port>* ports : {&function.inputs, &function.outputs}) {
    for (const Port& port : *ports) {
      if (values.insert(port.value).second)
        touched += program.values[static_cast<std::size_t>(port.value)].type.bytes();
    }
  }
  return touched;
}

}  // namespace

const ScheduleEstimate& Estimate::schedule_named(std::string_view name) const {
  for (const ScheduleEstimate& schedule : schedules) {
    if (schedule.name == name) return schedule;
  }
  fail(error(ErrorKind::not_found, "no schedule '{}' was estimated", name));
}

Bytes touched_between(const Program& program, int function) {
  Bytes most = touched_by(program, program.functions[static_cast<std::size_t>(function)]);
  for (const Schedule& schedule : program.schedules) {
    std::set<int> acting;
    for (const Action& action : schedule.actions) acting.insert(action.function);
    if (!acting.contains(function)) continue;
    Bytes touched;
    for (const int f : acting) touched += touched_by(program, program.functions[static_cast<std::size_t>(f)]);
    most = std::max(most, touched);
  }
  return most;
}

Estimate estimate(const Program& program, const MachineSpeed& speed) {
  check(speed).value();
  Estimate result{speed.name, speed.calibrated, {}, {}, memory_by_owner(program), program.arena, {}};
  std::vector<TimeByClass> times(program.functions.size());
  std::vector<Seconds> elapsed(program.functions.size());
  try {
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
      const Graph& graph = program.functions[f].graph;
      const Bytes ago = touched_between(program, static_cast<int>(f));
      times[f] = graph_time(graph, speed, ago);
      elapsed[f] = overlapped_time(graph, speed, ago).value_or(times[f].total());
    }
  } catch (const Failure& failure) {
    if (failure.error().kind != ErrorKind::not_found) throw;
    result.unknown = failure.error().message;
    std::ranges::fill(times, TimeByClass());
    std::ranges::fill(elapsed, Seconds());
  }
  for (const Schedule& schedule : program.schedules)
    result.schedules.push_back(estimate_schedule(program, schedule, times, elapsed));
  result.of_functions = std::move(elapsed);
  return result;
}

Result<double> matmul_ratio(const ScheduleEstimate& schedule, const MachineSpeed& speed) {
  if (schedule.time <= Seconds()) return error(ErrorKind::not_found, "the time of '{}' is not known", schedule.name);
  if (!schedule.matmul_type) return error(ErrorKind::not_found, "schedule '{}' has no contractions", schedule.name);
  const DType dtype = *schedule.matmul_type;
  if (!speed.matmul.contains(dtype))
    return error(ErrorKind::not_found, "'{}' has no matmul rate for {}", speed.name, name_of(dtype));
  const std::string what = fmt::format(
      "{} ({}) of {}", speed.calibrated ? "measured matmul rate" : "assumed matmul rate", name_of(dtype), speed.name);
  return utilisation(Flops(schedule.work.model_flops), schedule.time, matmul_rate(speed, dtype), what);
}

}  // namespace systole
