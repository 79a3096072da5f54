// attention and its gradient against loops over all pairs, in double.

#include "execute/backends/cpu/kernels/attention.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

struct Case {
  std::int64_t b, t, s, h, n, d;
  bool causal, segments, offset;
  std::int64_t window = 0, places = 0;  // places: size of a bias by distance
};
const Case kCases[] = {
    {1, 1, 1, 1, 1, 1, true, false, false},           {2, 5, 5, 2, 2, 3, true, false, false},
    {1, 64, 64, 1, 1, 16, true, false, false},        {1, 65, 65, 2, 1, 17, true, false, false},
    {2, 130, 130, 4, 2, 8, true, false, false},       {1, 300, 300, 1, 1, 32, true, false, false},
    {1, 33, 70, 2, 2, 20, false, false, false},       {2, 130, 130, 2, 1, 8, true, true, false},
    {1, 200, 200, 1, 1, 64, true, true, false},       {2, 70, 140, 2, 2, 5, false, true, false},
    {3, 1, 90, 4, 1, 16, true, false, true},          {3, 10, 90, 2, 2, 16, true, false, true},
    {2, 7, 3, 1, 1, 4, true, false, false},           {2, 0, 4, 1, 1, 4, true, false, false},
    {1, 4, 0, 1, 1, 4, false, false, false},          {1, 5, 5, 2, 1, 8, true, false, false, 2},
    {2, 300, 300, 2, 1, 16, true, false, false, 1},   {1, 300, 300, 2, 2, 16, true, false, false, 64},
    {1, 400, 400, 1, 1, 32, true, false, false, 100}, {2, 200, 200, 2, 1, 8, true, true, false, 30},
    {1, 70, 70, 1, 1, 8, true, false, false, 1000},   {3, 1, 200, 4, 1, 16, true, false, true, 24},
    {3, 10, 200, 2, 2, 16, true, true, true, 70},     {2, 70, 90, 4, 2, 8, false, true, false, 0, 33},
    {2, 150, 150, 2, 2, 8, true, true, false, 0, 9},  {3, 10, 90, 2, 1, 16, true, false, true, 0, 301},
    {2, 65, 4, 2, 2, 3, false, false, false, 0, 1},   {2, 150, 150, 2, 2, 8, true, true, false, 40, 9},
};

struct Problem {
  Case c;
  Elem elem;
  AttentionShape shape;
  Tensor q, k, v, g, q_segments, k_segments, offset, bias;

  Problem(const Case& c_, Elem e)
      : c(c_),
        elem(e),
        shape{c.b,      c.t,      c.s,         c.h, c.n, c.d, c.causal, 1 / std::sqrt(static_cast<double>(c.d)),
              c.window, c.places, c.places / 3},
        q(random_tensor(e, c.b * c.t * c.h * c.d, 1, 2)),
        k(random_tensor(e, c.b * c.s * c.n * c.d, 2)),
        v(random_tensor(e, c.b * c.s * c.n * c.d, 3)),
        g(random_tensor(e, c.b * c.t * c.h * c.d, 4)),
        q_segments(Elem::i32, c.b * c.t),
        k_segments(Elem::i32, c.b * c.s),
        offset(Elem::i32, c.b),
        bias(random_tensor(Elem::f32, c.h * c.places, 5)) {
    for (std::int64_t i = 0; i < q_segments.size(); ++i)
      q_segments.set(i, static_cast<double>((i % std::max<std::int64_t>(c.t, 1)) / 27));
    for (std::int64_t i = 0; i < k_segments.size(); ++i)
      k_segments.set(i, static_cast<double>((i % std::max<std::int64_t>(c.s, 1)) / 27));
    if (c.s > 0 && c.t > 100) k_segments.set(3, 99);  // a key that no query sees
    for (std::int64_t b = 0; b < c.b; ++b) offset.set(b, static_cast<double>(b == 0 ? 80 : b == 1 ? 17 : -3));
  }

  bool shape_lets(std::int64_t i, std::int64_t j) const {
    if (c.offset) return c.window == 0 || j < c.window;  // the offset is data: only the window's length counts
    return !c.causal || (j <= i && (c.window == 0 || i - j < c.window));
  }
  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const double place = static_cast<double>(i) + (c.offset ? offset.at(b) : 0);
    if (c.causal && static_cast<double>(j) > place) return false;
    if (c.window > 0 && place - static_cast<double>(j) >= static_cast<double>(c.window)) return false;
    return !c.segments || q_segments.at(b * c.t + i) == k_segments.at(b * c.s + j);
  }
  std::int64_t query(std::int64_t b, std::int64_t i, std::int64_t a) const { return ((b * c.t + i) * c.h + a) * c.d; }
  std::int64_t key(std::int64_t b, std::int64_t j, std::int64_t a) const {
    return ((b * c.s + j) * c.n + a / (c.h / c.n)) * c.d;
  }
  std::int64_t row(std::int64_t b, std::int64_t i, std::int64_t a) const { return (b * c.h + a) * c.t + i; }
  std::int64_t place(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    const auto shift = static_cast<std::int64_t>(c.offset ? offset.at(b) : 0);
    return a * c.places + std::clamp<std::int64_t>(j - i - shift + shape.origin, 0, c.places - 1);
  }
  double score(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    return shape.scale * dot(q, query(b, i, a), k, key(b, j, a)) + (c.places > 0 ? bias.at(place(b, i, j, a)) : 0);
  }
  const float* bias_values() const { return c.places > 0 ? reinterpret_cast<const float*>(bias.bytes()) : nullptr; }
  double dot(const Tensor& x, std::int64_t at_x, const Tensor& y, std::int64_t at_y) const {
    double sum = 0;
    for (std::int64_t e = 0; e < c.d; ++e) sum += x.at(at_x + e) * y.at(at_y + e);
    return sum;
  }
  template <typename Visit>
  void for_each_query(Visit visit) const {
    for (std::int64_t b = 0; b < c.b; ++b) {
      for (std::int64_t a = 0; a < c.h; ++a) {
        for (std::int64_t i = 0; i < c.t; ++i) visit(b, i, a);
      }
    }
  }
  std::int64_t pairs() const {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < c.t; ++i) {
      for (std::int64_t j = 0; j < c.s; ++j) pairs += shape_lets(i, j) ? c.b * c.h : 0;
    }
    return pairs;
  }
  std::int64_t mask_bytes() const {
    return (c.segments ? c.b * (c.t + c.s) * 4 : 0) + (c.offset ? c.b * 4 : 0) + c.h * c.places * 4;
  }
  template <typename T>
  const T* mask(const Tensor& t, bool used) const {
    return used ? reinterpret_cast<const T*>(t.bytes()) : nullptr;
  }
};

struct Exact {
  std::vector<double> o, lse;
};

Exact exact_attention(const Problem& p) {
  Exact exact{std::vector<double>(static_cast<std::size_t>(p.q.size())),
              std::vector<double>(static_cast<std::size_t>(p.c.b * p.c.h * p.c.t))};
  p.for_each_query([&](std::int64_t b, std::int64_t i, std::int64_t a) {
    double top = -kTestInf, sum = 0;
    std::vector<double> scores(static_cast<std::size_t>(p.c.s), -kTestInf);
    for (std::int64_t j = 0; j < p.c.s; ++j) {
      if (!p.sees(b, i, j)) continue;
      scores[static_cast<std::size_t>(j)] = p.score(b, i, j, a);
      top = std::max(top, scores[static_cast<std::size_t>(j)]);
    }
    for (const double s : scores) sum += s == -kTestInf ? 0 : std::exp(s - top);
    const double lse = exact.lse[static_cast<std::size_t>(p.row(b, i, a))] = sum == 0 ? -kTestInf : top + std::log(sum);
    for (std::int64_t j = 0; j < p.c.s; ++j) {
      const double s = scores[static_cast<std::size_t>(j)];
      if (s == -kTestInf) continue;
      for (std::int64_t e = 0; e < p.c.d; ++e)
        exact.o[static_cast<std::size_t>(p.query(b, i, a) + e)] += std::exp(s - lse) * p.v.at(p.key(b, j, a) + e);
    }
  });
  return exact;
}

// Scores are sums of d products of rounded factors, about 2 in size each: the error is below (d + 8) 2^-24 · 20, and
// exp passes it on.
double score_error(const Problem& p) { return static_cast<double>(p.c.d + 8) * rounding(Elem::f32) * 20; }

TEST(Attention, forward) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("b {} t {} s {} h {} n {} d {} causal {} segments {} offset {} window {}", c.b, c.t, c.s,
                               c.h, c.n, c.d, c.causal, c.segments, c.offset, c.window));
      const Problem p(c, elem);
      const Exact exact = exact_attention(p);
      Tensor o(elem, p.q.size()), lse(Elem::f32, c.b * c.h * c.t),
          workspace(Elem::f32, attention_workspace(p.shape, 3) / 4);
      everywhere(
          {&o, &lse},
          [&](const Kernels& k, int threads) {
            return k.attention(
                {p.shape, elem, p.q.bytes(), p.k.bytes(), p.v.bytes(), p.mask<std::int32_t>(p.q_segments, c.segments),
                 p.mask<std::int32_t>(p.k_segments, c.segments), p.mask<std::int32_t>(p.offset, c.offset), o.data(),
                 lse.as<float>(), workspace.data(), threads, p.bias_values()});
          },
          [&](const KernelReport& report) {
            EXPECT_TRUE(workspace.intact());
            const std::int64_t queries = c.b * c.h * c.t, bytes = (p.q.size() + 2 * p.k.size()) * size_of(elem);
            EXPECT_EQ(report.flops + report.skipped_flops,
                      p.pairs() * (4 * c.d + 3 + (c.places > 0 ? 1 : 0)) + queries * (c.d + 1));
            EXPECT_EQ(report.transcendentals + report.skipped_transcendentals, p.pairs() + queries);
            EXPECT_EQ(report.bytes_read, bytes + p.mask_bytes());
            EXPECT_EQ(report.bytes_written, p.q.size() * size_of(elem) + queries * 4);
            if (!c.segments && !c.offset) { EXPECT_EQ(report.skipped_flops, 0); }
            for (std::int64_t i = 0; i < lse.size(); ++i)
              expect_near(lse.at(i), exact.lse[static_cast<std::size_t>(i)],
                          score_error(p) + 4 * rounding(Elem::f32) * std::abs(exact.lse[static_cast<std::size_t>(i)]),
                          "lse " + std::to_string(i));
            for (std::int64_t i = 0; i < o.size(); ++i) {
              const double want = exact.o[static_cast<std::size_t>(i)];
              expect_near(o.at(i), want,
                          1.01 * rounding(elem) * std::abs(want) +
                              4 * (2 * score_error(p) + static_cast<double>(c.s + 20) * rounding(Elem::f32)),
                          "o " + std::to_string(i));
            }
          });
    }
  }
}

TEST(Attention, gradient) {
  for (const Elem elem : {Elem::f32, Elem::bf16}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("b {} t {} s {} h {} n {} d {} causal {} segments {} offset {} window {}", c.b, c.t, c.s,
                               c.h, c.n, c.d, c.causal, c.segments, c.offset, c.window));
      const Problem p(c, elem);
      const Exact exact = exact_attention(p);
      const Tensor o(elem, exact.o);
      Tensor lse(Elem::f32, exact.lse), dq(elem, p.q.size()), dk(elem, p.k.size()), dv(elem, p.k.size()),
          dbias(Elem::f32, p.bias.size()),
          workspace(Elem::f32, (attention_grad_workspace(p.shape, 3) + attention_bias_workspace(p.shape)) / 4);
      std::vector<double> want_b(static_cast<std::size_t>(p.bias.size())), size_b(want_b);
      std::vector<double> want_q(static_cast<std::size_t>(p.q.size())), want_k(static_cast<std::size_t>(p.k.size())),
          want_v(want_k), size_q(want_q), size_k(want_k), size_v(want_k);
      p.for_each_query([&](std::int64_t b, std::int64_t i, std::int64_t a) {
        const std::int64_t query = p.query(b, i, a);
        const double delta = p.dot(o, query, p.g, query);
        for (std::int64_t j = 0; j < c.s; ++j) {
          if (!p.sees(b, i, j)) continue;
          const std::int64_t key = p.key(b, j, a);
          const double weight = std::exp(p.score(b, i, j, a) - lse.at(p.row(b, i, a)));
          const double ds = weight * (p.dot(p.g, query, p.v, key) - delta) * p.shape.scale;
          // The difference is between sums as large as Σ|g v|.
          double sum = 0;
          for (std::int64_t e = 0; e < c.d; ++e)
            sum += std::abs(p.g.at(query + e)) * (std::abs(p.v.at(key + e)) + std::abs(o.at(query + e)));
          const double ds_size = weight * sum * p.shape.scale;
          if (c.places > 0) {
            want_b[static_cast<std::size_t>(p.place(b, i, j, a))] += ds / p.shape.scale;
            size_b[static_cast<std::size_t>(p.place(b, i, j, a))] += ds_size / p.shape.scale;
          }
          for (std::int64_t e = 0; e < c.d; ++e) {
            want_q[static_cast<std::size_t>(query + e)] += ds * p.k.at(key + e);
            want_k[static_cast<std::size_t>(key + e)] += ds * p.q.at(query + e);
            want_v[static_cast<std::size_t>(key + e)] += weight * p.g.at(query + e);
            size_q[static_cast<std::size_t>(query + e)] += ds_size * std::abs(p.k.at(key + e));
            size_k[static_cast<std::size_t>(key + e)] += ds_size * std::abs(p.q.at(query + e));
            size_v[static_cast<std::size_t>(key + e)] += weight * std::abs(p.g.at(query + e));
          }
        }
      });
      everywhere(
          {&dq, &dk, &dv, &dbias},
          [&](const Kernels& k, int threads) {
            return k.attention_grad({p.shape, elem, p.q.bytes(), p.k.bytes(), p.v.bytes(), o.bytes(), lse.as<float>(),
                                     p.g.bytes(), p.mask<std::int32_t>(p.q_segments, c.segments),
                                     p.mask<std::int32_t>(p.k_segments, c.segments),
                                     p.mask<std::int32_t>(p.offset, c.offset), dq.data(), dk.data(), dv.data(),
                                     workspace.data(), threads, p.bias_values(), dbias.as<float>()});
          },
          [&](const KernelReport& report) {
            EXPECT_TRUE(workspace.intact());
            const std::int64_t queries = c.b * c.h * c.t;
            EXPECT_EQ(report.flops + report.skipped_flops,
                      p.pairs() * (10 * c.d + 5 + (c.places > 0 ? 2 : 0)) + queries * 2 * c.d);
            EXPECT_EQ(report.transcendentals + report.skipped_transcendentals, p.pairs());
            EXPECT_EQ(report.bytes_read,
                      (3 * p.q.size() + 2 * p.k.size()) * size_of(elem) + queries * 4 + p.mask_bytes());
            EXPECT_EQ(report.bytes_written, (p.q.size() + 2 * p.k.size()) * size_of(elem) + p.bias.size() * 4);
            auto check = [&](const Tensor& got, const std::vector<double>& want, const std::vector<double>& size,
                             const char* what) {
              for (std::int64_t i = 0; i < got.size(); ++i) {
                const double w = want[static_cast<std::size_t>(i)];
                const double tolerance =
                    1.01 * rounding(elem) * std::abs(w) +
                    (2 * score_error(p) + static_cast<double>(c.s + c.t + 20) * rounding(Elem::f32)) *
                        size[static_cast<std::size_t>(i)];
                expect_near(got.at(i), w, tolerance + 1e-30, std::string(what) + " " + std::to_string(i));
              }
            };
            check(dq, want_q, size_q, "dq");
            check(dk, want_k, size_k, "dk");
            check(dv, want_v, size_v, "dv");
            check(dbias, want_b, size_b, "dbias");
          });
    }
  }
}

// Blocks of keys of other documents are skipped, and reported as skipped.
TEST(Attention, whole_blocks_of_other_segments_are_skipped) {
  const std::int64_t t = 256, d = 16;
  const AttentionShape shape{1, t, t, 1, 1, d, true, 0.25};
  const Tensor q = random_tensor(Elem::f32, t * d, 1);
  Tensor segments(Elem::i32, t), o(Elem::f32, t * d), lse(Elem::f32, t),
      workspace(Elem::f32, attention_workspace(shape, 1) / 4);
  for (std::int64_t i = 0; i < t; ++i) segments.set(i, static_cast<double>(i / 64));
  const KernelReport report =
      kernels_of(best_isa())
          .attention({shape, Elem::f32, q.bytes(), q.bytes(), q.bytes(), segments.as<std::int32_t>(),
                      segments.as<std::int32_t>(), nullptr, o.data(), lse.as<float>(), workspace.data(), 1});
  const std::int64_t done = 4 * 64 * 65 / 2;  // the diagonal blocks
  EXPECT_EQ(report.flops, done * (4 * d + 3) + t * (d + 1));
  EXPECT_EQ(report.skipped_flops, (t * (t + 1) / 2 - done) * (4 * d + 3));
}

}  // namespace
}  // namespace systole::cpu
