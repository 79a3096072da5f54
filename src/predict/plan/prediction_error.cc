#include "predict/plan/prediction_error.h"

#include "ground/base/counted.h"

namespace systole {
namespace {

std::string kind_words(const PredictionKind& kind) {
  const std::string stack = kind.stack == "default" ? "a stack without a profile" : kind.stack;
  return fmt::format("{} on {} ({})", stack, kind.accelerator, kind.work);
}

std::string on_words(const KnownError& known) {
  return known.accelerator == kAnyAccelerator ? "any accelerator" : known.accelerator;
}

}  // namespace

PredictionKind prediction_kind(const Workload& workload, const HardwareOption& offered) {
  PredictionKind kind{offered.stack.name, "dense", offered.cluster.chip.name};
  if (workload.model.experts() > 1)
    kind.work = "moe";
  else if (workload.train.precision.compute == DType::f32)
    kind.work = "f32";
  else if (offered.kernels.products != ProductType::bf16)
    kind.work = "fp8";
  return kind;
}

const KnownError* known_error_of(const PredictionKind& kind, std::string_view of) {
  return find_known_error(builtin_known_errors(), kind.stack, kind.work, kind.accelerator, of);
}

std::string plus_minus(const KnownError* known) {
  return known == nullptr ? "" : fmt::format(" ± {:.{}f}%", 100 * known->mean, known->mean < 0.1 ? 1 : 0);
}

std::string known_error_words(const PredictionKind& kind, const KnownError* known) {
  if (known == nullptr) return fmt::format("error unknown: no published rows tell of {}", kind_words(kind));
  std::string words;
  if (known->stack != kind.stack || known->accelerator != kind.accelerator) {
    const bool unseen = known->stack == kUnseenStack;
    if (!unseen || kind.stack != "default" || known->accelerator != kind.accelerator)
      words = fmt::format("few or no published rows of {}; ", kind_words(kind));
    if (unseen)
      words += fmt::format("mean error of {} ({}) on {}, each as if its stack had never been seen",
                           counted(known->rows, "published row"), known->work, on_words(*known));
  }
  if (known->stack != kUnseenStack)
    words += fmt::format("mean error of {} ({}) of {} on {}, fitted without their source",
                         counted(known->rows, "published row"), known->work, known->stack, on_words(*known));
  return words + fmt::format("; 90% lie within {:.{}f}%", 100 * known->p90, known->p90 < 0.1 ? 1 : 0);
}

Node known_error_node(const PredictionKind& kind, const KnownError* known) {
  Node node = Node::map({{"words", known_error_words(kind, known)}});
  if (known == nullptr) return node.set("mean", Node());
  return node.set("mean", known->mean)
      .set("p90", known->p90)
      .set("rows", known->rows)
      .set("of_stack", known->stack)
      .set("of_work", known->work)
      .set("on_accelerator", known->accelerator)
      .set("fitted_mean", known->fitted_mean ? Node(*known->fitted_mean) : Node());
}

}  // namespace systole
