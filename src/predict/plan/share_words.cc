#include "predict/plan/share_words.h"

#include <iterator>

namespace systole {

const char* words_of(StepShare share) {
  switch (share) {
    case StepShare::products: return "products";
    case StepShare::attention: return "attention";
    case StepShare::movement: return "memory-bound ops";
    case StepShare::host: return "launch overhead";
    case StepShare::tensor: return "exposed: activations (model)";
    case StepShare::context: return "exposed: keys and values (context)";
    case StepShare::expert: return "exposed: tokens (expert)";
    case StepShare::parameters: return "exposed: parameters (fsdp)";
    case StepShare::gradients: return "exposed: gradients (data, fsdp)";
    case StepShare::handing_on: return "exposed: between stages (pipe)";
    case StepShare::bubble: return "pipeline bubble";
    case StepShare::update: return "update";
    case StepShare::fixed: return "fixed cost, stragglers";
  }
  return "";
}

const char* share_colour(StepShare share) {
  // Compute in blues, messages from orange to red, everything else in greys.
  static constexpr const char* kColours[] = {"#0072B2", "#56B4E9", "#9ecbe8", "#cfe5f3", "#E69F00",
                                             "#f2c14e", "#F0E442", "#D55E00", "#b03a00", "#CC79A7",
                                             "#777777", "#009E73", "#bbbbbb"};
  static_assert(std::size(kColours) == kNumStepShares);
  return kColours[static_cast<std::size_t>(share)];
}

}  // namespace systole
