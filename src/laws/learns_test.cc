// Every kind of decoder learns: repeated steps on one batch reduce the loss to a fraction.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_job.h"

namespace systole::laws {
namespace {

TEST(Learns, every_kind_of_decoder) {
  const std::pair<const char*, DecoderSpec> kinds[] = {{"gpt", tiny_gpt()},
                                                       {"llama", tiny_llama()},
                                                       {"parallel", tiny_parallel()},
                                                       {"windowed", tiny_windowed()},
                                                       {"mixture", tiny_mixture()}};
  for (const auto& [name, config] : kinds) {
    const auto model = make_decoder(config);
    TinyJob job(*model, 2, f32_strategy(), make_reference_device());
    job.begin();
    job.set_batch(language_batch(2, 11, 3));
    job.step(0);
    const double first = job.loss();
    for (int step = 0; step < 80; ++step) job.step(3e-2);
    EXPECT_GT(first, 10) << name;
    EXPECT_LT(job.loss(), first / 4) << name << ": from " << first;
  }
}

}  // namespace
}  // namespace systole::laws
