#include "execute/calibrate/serving_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "describe/ops/ops.h"
#include "execute/calibrate/micro_run.h"

namespace systole {
namespace {

constexpr std::int64_t kSides[] = {256, 512, 1024, 2048};
constexpr std::int64_t kRows[] = {1, 2, 4, 8, 16, 32, 64, 256};
// Of i8: a product costs as the next larger of the kernel's shapes, few_shape of backends/cpu/kernels/int8_few.h.
constexpr std::int64_t kInt8Rows[] = {1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 64, 256};
constexpr Bytes kNear = 8 * kMiB, kFar = 96 * kMiB;

// Some rows times each of `copies` matrices.
Graph products_graph(DType weights, std::int64_t side, std::int64_t rows, std::int64_t copies) {
  Graph g("products");
  const Value x = g.input("x", Type(DType::f32, {rows, side}));
  const Type matrix(weights, {side, side});
  for (std::int64_t i = 0; i < copies; ++i) {
    const Value w = g.input(fmt::format("w{}", i), matrix);
    g.output(fmt::format("y{}", i), weights == DType::i8
                                        ? contract_int8(x, w, g.input(fmt::format("s{}", i), Type(DType::f32, {side})))
                                        : contract(x, w, "mk,kn->mn"));
  }
  return g;
}

// As a sampler does it at temperature 1, without options: the logits are copied, and each has an exponential.
std::size_t draw_once(const std::vector<float>& logits, std::vector<std::pair<double, std::int32_t>>& candidates,
                      std::vector<double>& weights) {
  candidates.clear();
  weights.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double logit = logits[i];
    if (!std::isnan(logit) && logit != -INFINITY) candidates.emplace_back(logit, static_cast<std::int32_t>(i));
  }
  const double most = std::ranges::max_element(candidates)->first;
  double total = 0;
  for (const auto& [logit, token] : candidates) total += weights.emplace_back(std::exp(logit - most));
  std::size_t drawn = 0;
  for (double left = total / 2; drawn + 1 < weights.size() && (left -= weights[drawn]) >= 0;) ++drawn;
  return drawn;
}

CalibratedFact draw_rate(Clock& clock, Seconds each) {
  std::vector<float> logits;
  for (int i = 0; i < 1 << 15; ++i) logits.push_back(static_cast<float>((37 * i) % 1000) / 100);
  std::vector<std::pair<double, std::int32_t>> candidates;
  std::vector<double> weights;
  std::vector<Seconds> times;
  std::size_t drawn = draw_once(logits, candidates, weights);
  for (const Seconds start = clock.now(); times.size() < 3 || clock.now() - start < each;) {
    const Seconds from = clock.now();
    drawn += draw_once(logits, candidates, weights);
    times.push_back(clock.now() - from);
  }
  CHECK(drawn > 0, "no token was drawn");
  const Sample s = sample_of(std::move(times));
  return {"serving.draw", static_cast<double>(logits.size()) / s.time.count(), CatalogUnit::per_second, s.spread,
          fmt::format("a token of 32 Ki by one thread, lower quarter of {}", s.runs)};
}

struct Products {
  DType type;
  std::int64_t side, rows;
  Bytes bytes;  // of all matrices
};

// Nothing: the device has no such products.
Result<std::optional<CalibratedFact>> product_rate(Device& device, Clock& clock, const Products& of, Seconds each,
                                                   Seconds call) {
  const Bytes matrix(of.side * of.side * size_of(of.type));
  const std::int64_t copies = std::max<std::int64_t>(1, of.bytes.count() / matrix.count());
  Result<std::unique_ptr<MicroRun>> made = MicroRun::make(device, products_graph(of.type, of.side, of.rows, copies));
  if (!made.ok() && made.error().kind == ErrorKind::unsupported && of.type == DType::i8) return {std::nullopt};
  const std::unique_ptr<MicroRun> run = TRY(std::move(made));
  const Sample s = TRY(run->measure(clock, each));
  const Seconds one = rest_of(s.time * (1 / static_cast<double>(copies)), call);
  return CalibratedFact{
      fmt::format("serving.product.{}.{}.{}{}", name_of(of.type), of.side, of.rows, of.bytes == kNear ? ".cached" : ""),
      static_cast<double>(of.side * of.side) / one.count(), CatalogUnit::per_second, s.spread,
      fmt::format("{} x {} times {} such matrices in turn, lower quarter of {}", of.rows, of.side, copies, s.runs)};
}

}  // namespace

Result<std::vector<CalibratedFact>> measure_serving(Device& device, Clock& clock, Seconds each, Seconds call) {
  std::vector<CalibratedFact> facts;
  for (const DType type : {DType::f32, DType::i8}) {
    for (const std::int64_t side : kSides)
      for (const std::int64_t rows : type == DType::i8 ? std::span<const std::int64_t>(kInt8Rows) : kRows)
        for (const Bytes bytes : {kFar, kNear})
          if (std::optional<CalibratedFact> fact =
                  TRY(product_rate(device, clock, {type, side, rows, bytes}, each, call)))
            facts.push_back(*std::move(fact));
  }
  facts.push_back(draw_rate(clock, each));
  return facts;
}

}  // namespace systole
