#pragma once
// Chooses the size of a language model for a text and a machine. Two rules bound it:
//
//   data     20 tokens per parameter (Hoffmann et al., arXiv:2203.15556), from at most 10 passes over the text;
//            from the fifth pass on, each helps the model less (Muennighoff et al., arXiv:2305.16264)
//   time     all steps within 10 minutes, by the predicted step time of the machine
//
// Takes the largest size that satisfies both; if none does, the smallest one, with fewer steps.

#include <cstdint>
#include <span>

#include "ground/base/units.h"

namespace systole {

struct ModelSize {
  std::int64_t layers = 0, width = 0, heads = 0;  // of a gpt
  std::int64_t context = 0;                       // tokens per row
  std::int64_t batch = 0;                         // rows per step
  const char* rate = "";                          // learning rate of AdamW, as in the workload
  std::int64_t tokens_a_step() const { return batch * context; }
};
std::span<const ModelSize> model_sizes();  // smallest first

constexpr Seconds kLongestFirstRun{600.0};

// Whether a text of so many tokens suffices for so many parameters.
bool feeds(std::int64_t text_tokens, std::int64_t parameters);

// Steps by the data rule, at least one.
std::int64_t steps_for(const ModelSize& size, std::int64_t parameters, std::int64_t text_tokens);
// As many of those as fit in kLongestFirstRun, at least one.
std::int64_t steps_in_time(std::int64_t steps, Seconds step);

}  // namespace systole
