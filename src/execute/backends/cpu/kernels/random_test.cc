#include "execute/backends/cpu/kernels/random.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Key {
  std::int64_t seed, step, site, row;
};

// The contract of random.h, from ground/base/philox.h.
std::uint32_t word_of(const Key& key, std::int64_t per_row, std::int64_t i) {
  const auto place =
      static_cast<std::uint64_t>(key.row) * static_cast<std::uint64_t>(per_row) + static_cast<std::uint64_t>(i);
  const auto high = (static_cast<std::uint64_t>(key.step) << 32) | (static_cast<std::uint64_t>(key.site) & 0xffffffffu);
  return philox(static_cast<std::uint64_t>(key.seed), philox_counter(place / 4, high))[place % 4];
}

const Key kKeys[] = {{1, 0, 0, 0}, {-7, 123456, 42, 3}, {std::int64_t{1} << 50, 9, 5, std::int64_t{1} << 35}};

TEST(Dropout, keeps_what_the_words_say) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const Key& key : kKeys) {
      for (const std::int64_t n : {0, 1, 5, 63, 4097, 10001}) {
        for (const double rate : {0.0, 0.1, 0.5, 0.999}) {
          const std::int64_t per_row = 7;
          const Tensor x = random_tensor(elem, n, 1);
          Tensor y(elem, n);
          everywhere(
              {&y},
              [&](const Kernels& k, int threads) {
                return k.dropout({x.bytes(),
                                  y.data(),
                                  elem,
                                  n,
                                  {&key.seed, &key.step, &key.site, &key.row, per_row},
                                  rate,
                                  threads});
              },
              [&](const KernelReport& report) {
                expect_report(report, n, 0, n * size_of(elem) + 32, n * size_of(elem));
                for (std::int64_t i = 0; i < n; ++i) {
                  const bool kept = static_cast<double>(uniform_f32(word_of(key, per_row, i))) >= rate;
                  const float want = kept ? static_cast<float>(x.at(i)) * static_cast<float>(1 / (1 - rate)) : 0;
                  ASSERT_EQ(y.at(i), rounded(dtype_of(elem), static_cast<double>(want))) << i;
                }
              });
        }
      }
    }
  }
}

// Blocks end within tokens and within runs of tokens; rows store the last chunk before the first.
TEST(Dropout, tokens_keep_the_bits_of_their_places) {
  const std::int64_t rows = 3, each = 7, length = 5000;
  const Key& key = kKeys[1];
  for (const std::int64_t tokens : {1, 4, 601}) {
    std::vector<std::int32_t> places;
    for (std::int64_t t = 0; t < tokens; ++t)
      places.push_back(static_cast<std::int32_t>(t < tokens / 2 ? length - tokens / 2 + t : 3 * (t % 5) + t));
    const std::int64_t n = rows * tokens * each;
    const Tensor x = random_tensor(Elem::f32, n, 3);
    Tensor y(Elem::f32, n);
    everywhere(
        {&y},
        [&](const Kernels& k, int threads) {
          return k.dropout({x.bytes(),
                            y.data(),
                            Elem::f32,
                            n,
                            {&key.seed, &key.step, &key.site, &key.row, tokens * each},
                            0.5,
                            threads,
                            {places.data(), tokens, length, each}});
        },
        [&](const KernelReport& report) {
          expect_report(report, n, 0, n * 4 + 32 + 4 * tokens, n * 4);
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t token = i / each, place = places[static_cast<std::size_t>(token % tokens)];
            const std::int64_t in_batch = (token / tokens * length + place) * each + i % each;
            const bool kept = static_cast<double>(uniform_f32(word_of(key, length * each, in_batch))) >= 0.5;
            ASSERT_EQ(y.at(i), kept ? 2 * x.at(i) : 0) << i;
          }
        });
  }
}

TEST(StochasticRound, has_the_bits_of_the_contract) {
  const std::int64_t n = 10007;
  Tensor x = random_tensor(Elem::f32, n, 2), y(Elem::bf16, n);
  const std::vector<double> special = {0.0, -0.0, kTestInf, -kTestInf, 3.4028234e38, -3.4028234e38, 1e-45, 1e-39, 1.0};
  for (std::size_t i = 0; i < special.size(); ++i) x.set(static_cast<std::int64_t>(i), special[i]);
  x.set(20, kTestNan);
  const Key& key = kKeys[1];
  everywhere(
      {&y},
      [&](const Kernels& k, int threads) {
        return k.stochastic_round(
            {x.bytes(), y.data(), Elem::f32, n, {&key.seed, &key.step, &key.site, &key.row, 3}, threads});
      },
      [&](const KernelReport& report) {
        expect_report(report, 0, 0, n * 4 + 32, n * 2);
        for (std::int64_t i = 0; i < n; ++i) {
          if (i == 20) {
            EXPECT_TRUE(std::isnan(y.at(i)));
            continue;
          }
          const double v = x.at(i);
          std::uint32_t bits;
          std::memcpy(&bits, x.as<std::uint32_t>() + i, 4);
          const std::uint32_t moved =
              std::isinf(v) ? bits : (bits & 0x80000000u) | ((bits & 0x7fffffffu) + (word_of(key, 3, i) >> 16));
          ASSERT_EQ(y.as<std::uint16_t>()[i], moved >> 16) << i;
        }
      });
}

TEST(StochasticRound, is_exact_in_the_mean) {
  const std::int64_t n = 40000;
  Tensor x(Elem::f32, n), y(Elem::bf16, n);
  const double value = 1 + 0.3 * 0x1p-7;  // three tenths of the way
  for (std::int64_t i = 0; i < n; ++i) x.set(i, value);
  const Key& key = kKeys[0];
  kernels_of(best_isa())
      .stochastic_round({x.bytes(), y.data(), Elem::f32, n, {&key.seed, &key.step, &key.site, &key.row, n}, 1});
  double mean = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += y.at(i) / static_cast<double>(n);
  EXPECT_NEAR(mean, value, 4 * 0x1p-7 * std::sqrt(0.21 / static_cast<double>(n)));  // four standard deviations
}

}  // namespace
}  // namespace systole::cpu
