#include "operate/init/model_size.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

constexpr std::int64_t kTokensAParameter = 20, kPasses = 10;

constexpr ModelSize kSizes[] = {
    {2, 64, 2, 128, 8, "3e-3"},   {2, 96, 3, 128, 16, "2e-3"},    {3, 128, 4, 256, 16, "2e-3"},
    {4, 192, 6, 256, 16, "2e-3"}, {6, 256, 8, 256, 16, "1e-3"},   {6, 384, 6, 256, 32, "1e-3"},
    {8, 512, 8, 512, 32, "1e-3"}, {12, 768, 12, 512, 32, "6e-4"},
};

}  // namespace

std::span<const ModelSize> model_sizes() { return kSizes; }

bool feeds(std::int64_t text_tokens, std::int64_t parameters) {
  return kTokensAParameter * parameters <= kPasses * text_tokens;
}

std::int64_t steps_for(const ModelSize& size, std::int64_t parameters, std::int64_t text_tokens) {
  const std::int64_t tokens = std::min(kTokensAParameter * parameters, kPasses * text_tokens);
  return std::max<std::int64_t>(1, tokens / size.tokens_a_step());
}

std::int64_t steps_in_time(std::int64_t steps, Seconds step) {
  if (step.count() <= 0) return steps;
  const double most = std::floor(kLongestFirstRun / step);
  return std::max<std::int64_t>(1, std::min(steps, static_cast<std::int64_t>(std::min(most, 1e9))));
}

}  // namespace systole
