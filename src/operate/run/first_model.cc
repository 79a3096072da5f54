#include "operate/run/first_model.h"

#include "describe/models/list.h"
#include "operate/run/plan_here.h"

namespace systole {

FirstModel chosen_first_model(const TextFacts& text, FirstWorkload first, Clock& clock) {
  FirstModel model{.text = text};
  first.model = &model;
  for (std::size_t i = model_sizes().size(); i-- > 0;) {
    const bool smallest = i == 0;
    model.size = model_sizes()[i];
    model.steps = 1;
    const Workload workload = read_workload(first_workload(first).value(), "--name").value();
    const std::int64_t parameters = num_parameters(*make_model(workload.model));
    if (!smallest && !feeds(text.tokens(), parameters)) continue;
    model.steps = steps_for(model.size, parameters, text.tokens());
    const Result<PlanFacts> here = plan_here(workload, parameters, clock);
    const bool known = here.ok() && here->step;
    if (!smallest && !(known && here->fits())) continue;
    if (!known) break;
    const std::int64_t in_time = steps_in_time(model.steps, *here->step);
    if (!smallest && in_time < model.steps) continue;
    model.steps = in_time;
    if (target_of(first.pattern).empty())
      model.predicted = fmt::format("about {} on this machine{}", to_string(*here->step * static_cast<double>(in_time)),
                                    here->calibrated ? "" : ", uncalibrated");
    break;
  }
  return model;
}

}  // namespace systole
