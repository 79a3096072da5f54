// A plain training step: forward and backward of the whole model, one microbatch after the other, with accumulated
// gradients; "reduce" over the devices; the update.

#include "describe/partition/training_policy.h"
#include "describe/partition/whole_model.h"

namespace systole {
namespace {

class PlainTraining final : public TrainingPolicy {
 public:
  explicit PlainTraining(TrainingBuilder& builder) : TrainingPolicy(builder), model_(builder) {}

  void add_inputs(const Graph& loss) override { model_.add_inputs(loss, microbatches()); }

  void add_outputs() override {
    for (const std::string& name : model_.sums()) builder_.add_output(name, builder_.scalar(), microbatches());
  }

  void add_forward_backward(const Graph& loss) override {
    model_.add_forward(loss, [](const std::string& name) { return name; });
    model_.add_backward("backward", microbatches() > 1, false);
    if (microbatches() > 1) builder_.add_zero();
  }

  void add_update() override {
    builder_.add_reduce();
    builder_.add_update(false);
  }

  void add_schedule() override { add_step("train", ""); }

  void add_shape(std::int64_t length, const Graph& loss) override {
    const std::string suffix = fmt::format(".{}", length);
    WholeModel shape(builder_, shape_prefix(length), suffix);
    shape.add_inputs(loss, microbatches());
    shape.add_forward(loss, [](const std::string& name) { return name; });
    shape.add_backward("backward", microbatches() > 1, false);
    add_step(train_schedule(length), suffix);
  }

  void add_evaluation(Graph evaluation) override {
    WholeModel::Evaluation part = model_.add_evaluation(std::move(evaluation), 1, false);
    const int f =
        builder_.add_function("evaluate", std::move(part.graph), part.in, {{"loss", {"evaluate/loss", false}}});
    builder_.program().add_schedule({"evaluate", {{f, 0, 0, Stream::compute, {}}}});
  }

 private:
  int microbatches() const { return builder_.microbatches(); }

  // `suffix`: of the forward and backward of its shape.
  void add_step(const std::string& name, const std::string& suffix) {
    ProgramBuilder& program = builder_.program();
    Schedule schedule{name, {}};
    const auto act = [&](const std::string& function, int microbatch) {
      schedule.actions.push_back({program.function_index(function), 0, microbatch, Stream::compute, {}});
    };
    if (microbatches() > 1) act("zero", 0);
    for (int mb = 0; mb < microbatches(); ++mb) {
      act("forward" + suffix, mb);
      act("backward" + suffix, mb);
    }
    if (program.has_function("reduce")) act("reduce", 0);
    act("update", 0);
    program.add_schedule(std::move(schedule));
  }

  WholeModel model_;
};

}  // namespace

std::unique_ptr<TrainingPolicy> plain_training(TrainingBuilder& builder) {
  return std::make_unique<PlainTraining>(builder);
}

}  // namespace systole
