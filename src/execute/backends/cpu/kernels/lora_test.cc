// lora_rows: a row's bits depend on the row and its adapter alone; a row without one keeps those of y. Values are
// compared with the reference by the cases of describe/ops/testing/lora_rows.cc.

#include "execute/backends/cpu/kernels/lora.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

constexpr std::int64_t kEntries = 9, kRows = 3, kIn = 70, kOut = 45, kAdapters = 3, kRank = 5;

struct Problem {
  Tensor x = random_tensor(Elem::f32, kEntries* kRows* kIn, 1);
  Tensor y = random_tensor(Elem::f32, kEntries* kRows* kOut, 2);
  Tensor a = random_tensor(Elem::f32, kAdapters* kRank* kIn, 3);
  Tensor b = random_tensor(Elem::f32, kAdapters* kRank* kOut, 4);
  Tensor which = Tensor(Elem::i32, {2, 0, 1, 3, -1, 4, 2, 0, 3});

  // Of `entries` from `first` on; z may be their y.
  KernelReport run(const Kernels& kernels, std::int64_t first, std::int64_t entries, float* z, int threads) {
    return kernels.lora_rows({x.as<float>() + first * kRows * kIn, y.as<float>() + first * kRows * kOut, a.as<float>(),
                              b.as<float>(), which.as<std::int32_t>() + first, z, entries, kRows, kIn, kOut, kAdapters,
                              kRank, threads});
  }
};

TEST(LoraRows, a_row_alone_is_the_row_in_company_for_any_number_of_threads) {
  Problem p;
  constexpr std::int64_t kSize = kRows * kOut;
  Tensor z(Elem::f32, kEntries * kSize), alone(Elem::f32, kSize);
  everywhere(
      {&z}, [&](const Kernels& kernels, int threads) { return p.run(kernels, 0, kEntries, z.as<float>(), threads); },
      [&](const KernelReport& report) {
        constexpr std::int64_t kRowFlops = 2 * kRank * (kIn + kOut);
        EXPECT_EQ(report.flops, 5 * kRows * kRowFlops);
        EXPECT_EQ(report.skipped_flops, 4 * kRows * kRowFlops);
      });
  for (const Isa isa : isas_here()) {
    p.run(kernels_of(isa), 0, kEntries, z.as<float>(), 2);
    for (std::int64_t e = 0; e < kEntries; ++e) {
      p.run(kernels_of(isa), e, 1, alone.as<float>(), 1);
      EXPECT_EQ(std::memcmp(alone.bytes(), z.bytes() + e * kSize * 4, kSize * 4), 0) << name_of(isa) << " entry " << e;
      const double adapter = p.which.at(e);
      const bool same = std::memcmp(z.bytes() + e * kSize * 4, p.y.bytes() + e * kSize * 4, kSize * 4) == 0;
      EXPECT_EQ(same, adapter < 1 || adapter > kAdapters) << name_of(isa) << " entry " << e;
    }
  }
}

TEST(LoraRows, may_overwrite_y) {
  for (const Isa isa : isas_here()) {
    Problem p;
    Tensor z(Elem::f32, kEntries * kRows * kOut);
    p.run(kernels_of(isa), 0, kEntries, z.as<float>(), 2);
    p.run(kernels_of(isa), 0, kEntries, p.y.as<float>(), 2);
    EXPECT_TRUE(p.y.copy() == z.copy()) << name_of(isa);
    EXPECT_TRUE(p.y.intact() && z.intact());
  }
}

}  // namespace
}  // namespace systole::cpu
