#include "predict/perf/step_time.h"

#include <algorithm>
#include <cmath>

#include "predict/schedule/pipeline_time.h"

namespace systole {
namespace {

// Constants of all stacks. Those marked "set" were set on published steps and are counted beside every error
// (docs/accuracy.md).
constexpr double kGrouped = 0.75, kGroupedTpu = 0.45;  // set: products of experts, relative to one product
constexpr double kHead = 0.95;                         // set: products of the head, the largest of all
constexpr double kUncovered = 0.05;                    // of overlapped messages: the first and the last overlap nothing
constexpr double kRingCovered = 0.8;                   // of attention, which the ring of keys and values overlaps
constexpr double kRingUncovered = 0.1;
constexpr double kExpertOverlap = 0.8;  // of all_to_all, if another microbatch computes meanwhile
constexpr double kCaptured = 0.9;       // of a launch, saved in a graph
constexpr double kHandover = 10e-6;     // seconds to begin a message between stages
constexpr double kStallRanks = 64;      // set: size of a tensor group at which each rank waits twice as long
constexpr double kStraggling = 0.003;   // set: of a step, for each doubling of machines that synchronise
constexpr double kSharpness = 6;        // of the smooth maximum of host and device

double smooth_maximum(double a, double b) {
  const double most = std::max(a, b);
  if (most <= 0) return 0;
  return most * std::pow(std::pow(a / most, kSharpness) + std::pow(b / most, kSharpness), 1 / kSharpness);
}

double seconds_of(const MessageParts& message, const StackProfile& stack) {
  return message.seconds + message.far_seconds / stack.network + message.far_hops * stack.hop;
}

class Pricing {
 public:
  Pricing(const StepParts& parts, const StackProfile& stack) : parts_(parts), stack_(stack) {
    products_ = products_share(parts.kernels, stack);
    grouped_ = products_ * (stack.whole_step ? kGroupedTpu : kGrouped);
  }

  double seconds_of(const MessageParts& message) const { return systole::seconds_of(message, stack_); }

  StepTime price(const FunctionParts& function) const {
    StepTime time;
    for (const StretchParts& stretch : function) add(stretch, time);
    return time;
  }

 private:
  void add(const StretchParts& stretch, StepTime& time) const {
    const WorkParts& w = stretch.once;
    StepTime once;
    once[StepShare::products] = w.products / products_ + w.grouped / grouped_ + w.head_products / kHead;
    once[StepShare::attention] = w.attention / stack_.attention;
    once[StepShare::movement] = w.moved * stack_.movement;
    once[StepShare::update] = w.update;
    once[StepShare::tensor] = (1 - stack_.tensor_hidden) * seconds_of(w.tensor);
    const double ring = seconds_of(w.context);
    once[StepShare::context] = std::max(ring - kRingCovered * once[StepShare::attention], kRingUncovered * ring);
    once[StepShare::expert] = seconds_of(w.expert) * (parts_.kernels.expert_overlap ? 1 - kExpertOverlap : 1);
    double device = 0;
    for (const double s : once.shares) device += s;
    double host = stack_.whole_step ? 0 : w.kernels * stack_.launch * (1 - kCaptured * parts_.kernels.captured);
    if (parts_.far_stages)
      host += w.layers * stack_.stall * (parts_.tensor_ranks + 1) * (1 + parts_.tensor_ranks / kStallRanks);
    const double busy = smooth_maximum(device, host);
    once[StepShare::host] = busy - device;
    const double parameters = seconds_of(w.parameters), gradients = seconds_of(w.gradients),
                 sent = parameters + gradients;
    const double exposed = std::max(sent - stack_.data_hidden * busy, 0.0) + kUncovered * sent;
    if (sent > 0) {
      once[StepShare::parameters] = exposed * parameters / sent;
      once[StepShare::gradients] = exposed * gradients / sent;
    }
    for (std::size_t i = 0; i < once.shares.size(); ++i) {
      time.shares[i] += once.shares[i] * stretch.times;
      time.seconds += once.shares[i] * stretch.times;
    }
  }

  const StepParts& parts_;
  const StackProfile& stack_;
  double products_ = 1, grouped_ = 1;
};

double sum(const StepTime& time, std::initializer_list<StepShare> shares) {
  double total = 0;
  for (const StepShare s : shares) total += time[s];
  return total;
}

void add(StepTime& to, const StepTime& from, double times) {
  for (std::size_t i = 0; i < to.shares.size(); ++i) to.shares[i] += from.shares[i] * times;
  to.seconds += from.seconds * times;
}

void add(StepTime& to, StepShare share, double seconds) {
  to[share] += seconds;
  to.seconds += seconds;
}

// Gradient sums, norm and update of a stage. The sums overlap the last microbatch's backward, unless a compiler keeps
// them behind the loop, or a sharded optimizer's gather and scatter are exposed.
StepTime after_of(const Pricing& pricing, const FunctionParts& after, double covered, const StackProfile& stack) {
  FunctionParts rest = after;
  double parameters = 0, gradients = 0;
  for (StretchParts& stretch : rest) {
    parameters += stretch.times * pricing.seconds_of(stretch.once.parameters);
    gradients += stretch.times * pricing.seconds_of(stretch.once.gradients);
    stretch.once.parameters = stretch.once.gradients = {};
  }
  StepTime time = pricing.price(rest);
  const double sent = parameters + gradients;
  if (sent <= 0) return time;
  const bool open = stack.whole_step || (stack.gathers_late && parameters > 0);
  const double exposed = open ? sent : std::max(sent - stack.data_hidden * covered, 0.0) + kUncovered * sent;
  add(time, StepShare::parameters, exposed * parameters / sent);
  add(time, StepShare::gradients, exposed * gradients / sent);
  return time;
}

}  // namespace

const char* name_of(StepShare share) {
  static constexpr const char* kNames[kNumStepShares] = {
      "products",   "attention", "movement",   "host",   "tensor", "context", "expert",
      "parameters", "gradients", "handing on", "bubble", "update", "fixed"};
  return kNames[static_cast<std::size_t>(share)];
}

double products_share(const KernelChoice&, const StackProfile& stack) { return stack.products; }

StepTime work_time(const FunctionParts& work, const StepParts& step, const StackProfile& stack) {
  return Pricing(step, stack).price(work);
}

StepTime after_time(const FunctionParts& after, double covered, const StepParts& step, const StackProfile& stack) {
  return after_of(Pricing(step, stack), after, covered, stack);
}

double handing_on_time(const MessageParts& message, const StackProfile& stack) {
  return seconds_of(message, stack) + kHandover;
}

double fixed_time(double seconds, const StepParts& step, const StackProfile& stack) {
  return seconds * kStraggling * std::log2(std::max(1.0, step.machines)) + stack.step;
}

StepTime step_time(const StepParts& parts, const StackProfile& stack) {
  const Pricing pricing(parts, stack);
  const std::size_t stages = parts.after.size(), chunks = parts.chunks.size();
  PipelineCosts costs;
  std::vector<StepTime> of_stage(stages);  // of a microbatch
  for (std::size_t c = 0; c < chunks; ++c) {
    const auto handing = [&](std::size_t boundary) {
      return stages > 1 ? handing_on_time(parts.chunks[boundary].handed_on, stack) : 0;
    };
    StepTime forward = pricing.price(parts.chunks[c].forward), backward = pricing.price(parts.chunks[c].backward);
    if (c + 1 < chunks) add(forward, StepShare::handing_on, handing(c));
    if (c > 0) add(backward, StepShare::handing_on, handing(c - 1));
    costs.forward.emplace_back(forward.seconds);
    costs.backward.emplace_back(backward.seconds);
    add(of_stage[c % stages], forward, 1);
    add(of_stage[c % stages], backward, 1);
  }
  std::size_t slowest = 0;
  for (std::size_t s = 1; s < stages; ++s)
    if (of_stage[s].seconds > of_stage[slowest].seconds) slowest = s;

  StepTime time;
  add(time, of_stage[slowest], parts.microbatches);
  if (stages > 1) {
    const double end = pipeline_time(parts.pipeline, parts.microbatches, costs).count();
    add(time, StepShare::bubble, end - time.seconds);
  }
  StepTime last;
  for (std::size_t s = 0; s < stages; ++s) {
    // Messages overlap a microbatch's work, and the time in which the pipeline fills and empties.
    const double covered =
        of_stage[s].seconds - sum(of_stage[s], {StepShare::parameters, StepShare::gradients}) + time[StepShare::bubble];
    StepTime after = after_of(pricing, parts.after[s], covered, stack);
    if (after.seconds >= last.seconds) last = after;
  }
  add(time, last, 1);
  add(time, StepShare::fixed, fixed_time(time.seconds, parts, stack));
  return time;
}

}  // namespace systole
