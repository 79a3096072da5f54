#include "predict/perf/predicted_peak.h"

#include <algorithm>

#include "describe/partition/fused_step.h"
#include "predict/perf/compiled_peak.h"

namespace systole {

std::optional<std::string> predicted_peak_text(const std::string& backend, const std::string& chip,
                                               const Program& program, Bytes temporaries) {
  const auto step = std::ranges::find(program.functions, std::string(kStepFunction), &Function::name);
  if ((backend != "gpu" && backend != "tpu") || step == program.functions.end()) return std::nullopt;
  const CompiledPeak peak = compiled_peak(program, *step, layout_of_compiler(backend, chip));
  return fmt::format("predicted of the compiler: {} a device, {} of them temporaries; it took {} of temporaries",
                     to_string(peak.needed()), to_string(peak.temporaries), to_string(temporaries));
}

}  // namespace systole
