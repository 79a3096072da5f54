#pragma once
// Reports the purpose of each action of a schedule to the ledger, the rank's flight log and the hooks.

#include <string_view>

#include "describe/partition/fused_step.h"
#include "execute/runtime/executor.h"
#include "execute/train/stage_watch.h"
#include "execute/train/time_ledger.h"
#include "execute/train/trainer.h"

namespace systole {

// Opens the category of each action, by its function's purpose.
class PhaseObserver final : public ActionObserver {
 public:
  PhaseObserver(TimeLedger& ledger, const TrainHooks& hooks, StageWatch* stages)
      : ledger_(ledger), hooks_(hooks), stages_(stages) {}
  void begin(const Action& action, const Function& function) override {
    const Category category = category_of(function.name);
    if (stages_ != nullptr) stages_->function(function.name);
    before_ = ledger_.enter(category);
    if (hooks_.on_phase && tells_phase(function.name)) hooks_.on_phase(name_of(category));
    if (hooks_.on_action) hooks_.on_action(step, action, function);
    if (hooks_.in_compute && is_forward(function.name)) hooks_.in_compute(step);
    if (hooks_.in_backward && is_backward(function.name)) hooks_.in_backward(step);
  }
  void end(const Action&, const Function&) override { ledger_.enter(before_); }
  void begin_wait(const Function& function) override { before_ = ledger_.enter(category_of(function.name)); }
  void end_wait() override { ledger_.enter(before_); }

  std::int64_t step = 0;
  // What the hooks hear about a function of a schedule.
  static bool tells_phase(std::string_view function) { return function != "merge" && function != "norm"; }  // parts
  static bool is_step(std::string_view name) { return name.starts_with(kStepFunction); }                    // "step.64"
  static bool is_forward(std::string_view name) { return is_step(name) || name.starts_with("forward"); }
  static bool is_backward(std::string_view name) { return is_step(name) || name.starts_with("backward"); }
  static Category category_of(std::string_view function) {
    if (function == "update" || function == "norm") return Category::update;
    if (function == "reduce" || function == "merge") return Category::reduce;
    if (function.starts_with("evaluate")) return Category::evaluation;
    if (function.starts_with("send") || function.starts_with("receive") || function.starts_with("add_ties"))
      return Category::reduce;
    if (function == "snapshot") return Category::snapshot;
    return Category::compute;
  }

 private:
  TimeLedger& ledger_;
  const TrainHooks& hooks_;
  StageWatch* stages_;
  Category before_ = Category::other;
};

}  // namespace systole
