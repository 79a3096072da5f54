// Rendering any target is fast enough not to be noticed.

#include <gtest/gtest.h>

#include <chrono>

#include "operate/targets/testing/rendered_examples.h"

namespace systole {
namespace {

TEST(RenderMeasured, any_example_takes_less_than_50_ms) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "measures time: runs in the release build";
#endif
  double most = 0;
  for (const Example& example : examples()) {
    const Workload workload = workload_of(example);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(rendered(workload, example.target, "here", example.base, example.accelerator).ok());
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    EXPECT_LT(ms, 50) << example.folder;
    most = std::max(most, ms);
  }
  fmt::print("NOTE {} examples rendered, the slowest in {:.1f} ms (50 are allowed)\n", examples().size(), most);
}

}  // namespace
}  // namespace systole
