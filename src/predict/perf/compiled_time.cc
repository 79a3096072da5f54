#include "predict/perf/compiled_time.h"

#include <algorithm>

namespace systole {

Result<std::optional<ScheduleSpeed>> schedule_speed_of(const CatalogEntry& chip) {
  if (!chip.facts.contains("schedule.elements")) return std::optional<ScheduleSpeed>();
  const double devices = chip.facts.contains("devices") ? TRY(chip.number("devices")) : 1;
  ScheduleSpeed speed;
  speed.cycles_per_second = TRY(chip.per_second("clock"));
  const double cycles = speed.cycles_per_second * devices;
  speed.flops = TRY(chip.flop_rate("matmul.bf16")).count() / cycles;
  speed.bytes = TRY(chip.bytes_per_second("memory.bandwidth")).count() / cycles;
  speed.elements = TRY(chip.number("schedule.elements"));
  speed.results = TRY(chip.number("schedule.results"));
  speed.filled = TRY(chip.number("schedule.filled"));
  speed.scores = TRY(chip.number("schedule.scores"));
  speed.block = TRY(chip.number("schedule.block"));
  speed.call = TRY(chip.number("schedule.call"));
  speed.beside = TRY(chip.number("schedule.beside"));
  for (const double rate : {speed.cycles_per_second, speed.flops, speed.bytes, speed.elements, speed.results,
                            speed.filled, speed.scores, speed.block}) {
    if (!(rate > 0)) return error(ErrorKind::invalid, "a rate of the schedules of '{}' is not positive", chip.name);
  }
  return std::optional(speed);
}

Seconds compiled_time(const CompiledKernel& kernel, const ScheduleSpeed& speed) {
  const double products = kernel.flops / speed.flops, moving = kernel.bytes / speed.bytes,
               passing = kernel.elements / speed.elements;
  double cycles = speed.call * kernel.calls + kernel.filled / speed.filled;
  if (kernel.op_class == OpClass::contraction) {
    const double results = kernel.results / speed.results,
                 passes = std::max(moving, kernel.streamed / speed.block / speed.bytes),
                 longest = std::max({products, results, passes});
    cycles += longest + speed.beside * (products + results + passes - longest);
  } else {
    const double scores = kernel.scores / speed.scores, longest = std::max(products, scores);
    cycles += longest + speed.beside * (products + scores - longest) + passing + moving;
  }
  return Seconds(cycles * kernel.runs / speed.cycles_per_second);
}

TimeByClass compiled_time(std::span<const CompiledKernel> kernels, const ScheduleSpeed& speed) {
  TimeByClass time;
  for (const CompiledKernel& kernel : kernels) time[kernel.op_class] += compiled_time(kernel, speed);
  return time;
}

}  // namespace systole
