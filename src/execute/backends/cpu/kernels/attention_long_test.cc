// Attention over 8,192 positions: no memory of size queries × keys, and correct results on random rows.

#include "execute/backends/cpu/kernels/attention.h"
#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

constexpr std::int64_t kPlaces = 8192, kHead = 16;
constexpr AttentionShape kShape{1, kPlaces, kPlaces, 1, 1, kHead, true, 0.25};
const std::int64_t kRows[] = {0, 1, 63, 64, 1000, 4095, 4096, 6001, kPlaces - 2, kPlaces - 1};

double dot(const Tensor& x, std::int64_t i, const Tensor& y, std::int64_t j) {
  double sum = 0;
  for (std::int64_t e = 0; e < kHead; ++e) sum += x.at(i * kHead + e) * y.at(j * kHead + e);
  return sum;
}

struct Long {
  Tensor q = random_tensor(Elem::f32, kPlaces*kHead, 1), k = random_tensor(Elem::f32, kPlaces*kHead, 2),
         v = random_tensor(Elem::f32, kPlaces*kHead, 3), g = random_tensor(Elem::f32, kPlaces*kHead, 4);
  Tensor o{Elem::f32, kPlaces*kHead}, lse{Elem::f32, kPlaces};

  double score(std::int64_t i, std::int64_t j) const { return kShape.scale * dot(q, i, k, j); }
  // The lse of query i, in double.
  double exact_lse(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t j = 0; j <= i; ++j) sum += std::exp(score(i, j));
    return std::log(sum);
  }
  void forward(Tensor& workspace) {
    kernels_of(best_isa())
        .attention({kShape, Elem::f32, q.bytes(), k.bytes(), v.bytes(), nullptr, nullptr, nullptr, o.data(),
                    lse.as<float>(), workspace.data(), 2});
  }
};

TEST(AttentionLong, forward) {
  static_assert(attention_workspace(kShape, 2) < kPlaces * kPlaces / 100);
  Long p;
  Tensor workspace(Elem::f32, attention_workspace(kShape, 2) / 4);
  p.forward(workspace);
  EXPECT_TRUE(workspace.intact() && p.o.intact() && p.lse.intact());
  for (const std::int64_t i : kRows) {
    const double lse = p.exact_lse(i);
    expect_near(p.lse.at(i), lse, 1e-5, "lse " + std::to_string(i));
    for (std::int64_t e = 0; e < kHead; ++e) {
      double want = 0;
      for (std::int64_t j = 0; j <= i; ++j) want += std::exp(p.score(i, j) - lse) * p.v.at(j * kHead + e);
      expect_near(p.o.at(i * kHead + e), want, 2e-5, "o " + std::to_string(i));
    }
  }
}

TEST(AttentionLong, gradient) {
  static_assert(attention_grad_workspace(kShape, 2) < kPlaces * kPlaces / 4);
  Long p;
  Tensor dq(Elem::f32, kPlaces * kHead), dk(dq), dv(dq),
      workspace(Elem::f32, std::max(attention_workspace(kShape, 2), attention_grad_workspace(kShape, 2)) / 4);
  p.forward(workspace);
  kernels_of(best_isa())
      .attention_grad({kShape, Elem::f32, p.q.bytes(), p.k.bytes(), p.v.bytes(), p.o.bytes(), p.lse.as<float>(),
                       p.g.bytes(), nullptr, nullptr, nullptr, dq.data(), dk.data(), dv.data(), workspace.data(), 2});
  EXPECT_TRUE(workspace.intact() && dq.intact() && dk.intact() && dv.intact());
  const auto weight = [&](std::int64_t i, std::int64_t j) { return std::exp(p.score(i, j) - p.lse.at(i)); };
  const auto ds = [&](std::int64_t i, std::int64_t j) {
    return weight(i, j) * (dot(p.g, i, p.v, j) - dot(p.o, i, p.g, i)) * kShape.scale;
  };
  for (const std::int64_t row : kRows) {
    for (std::int64_t e = 0; e < kHead; ++e) {
      double want_q = 0, want_k = 0, want_v = 0;
      for (std::int64_t j = 0; j <= row; ++j) want_q += ds(row, j) * p.k.at(j * kHead + e);
      for (std::int64_t i = row; i < kPlaces; ++i) {
        want_k += ds(i, row) * p.q.at(i * kHead + e);
        want_v += weight(i, row) * p.g.at(i * kHead + e);
      }
      expect_near(dq.at(row * kHead + e), want_q, 5e-5, "dq " + std::to_string(row));
      expect_near(dk.at(row * kHead + e), want_k, 5e-5, "dk " + std::to_string(row));
      expect_near(dv.at(row * kHead + e), want_v, 5e-5, "dv " + std::to_string(row));
    }
  }
}

}  // namespace
}  // namespace systole::cpu
