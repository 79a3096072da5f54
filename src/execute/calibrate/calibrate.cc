#include "execute/calibrate/calibrate.h"

#include <unistd.h>

#include <algorithm>

#include "describe/graph/ops/ops.h"
#include "execute/calibrate/micro_run.h"

namespace systole {
namespace {

constexpr std::int64_t kMatmul = 2048, kChainElements = 1 << 19;
constexpr int kChainSteps = 20;
constexpr Bytes kLeast = 192 * kMiB, kMost = 512 * kMiB;  // what memory is measured with

bool computes(const Device& device, DType dtype) {
  const std::vector<DType>& dtypes = device.target().dtypes;
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

Graph matmul_graph(DType dtype, std::int64_t n) {
  Graph g("matmul");
  const Value a = g.input("a", Type(dtype, {n, n})), b = g.input("b", Type(dtype, {n, n}));
  g.output("c", contract(a, b, "mk,kn->mn"));
  return g;
}

// As training has it: the left operand, and the gradients of both, one of which reads its operands across.
Graph contraction_graph(DType dtype) {
  Graph g("contraction");
  const Value x = g.input("x", Type(dtype, {2048, 768})), w = g.input("w", Type(dtype, {768, 1536}));
  const Value dy = g.input("dy", Type(dtype, {2048, 1536}));
  g.output("y", contract(x, w, "mk,kn->mn"));
  g.output("dx", contract(dy, w, "mn,kn->mk"));
  g.output("dw", contract(x, dy, "mk,mn->kn", DType::f32));
  return g;
}

// Causal attention of `heads`, all of them 256 wide.
Type attention_type(DType dtype, std::int64_t heads) {
  return Type(dtype, {8, 256, heads, 256 / heads}, {"batch", "seq", "heads", "head"});
}

Graph attention_graph(DType dtype, std::int64_t heads) {
  Graph g("attention");
  const Type type = attention_type(dtype, heads);
  const Attention forward = attention(g.input("q", type), g.input("k", type), g.input("v", type), {});
  g.output("o", forward.o);
  g.output("lse", forward.lse);
  return g;
}

Graph attention_grad_graph(DType dtype, std::int64_t heads) {
  Graph g("attention_grad");
  const Type type = attention_type(dtype, heads);
  const Value q = g.input("q", type), k = g.input("k", type), v = g.input("v", type), o = g.input("o", type);
  const Value lse = g.input("lse", Type(DType::f32, {8, heads, 256}, {"batch", "heads", "seq"}));
  const AttentionGrad back = attention_grad(q, k, v, o, lse, g.input("d", type), {});
  g.output("dq", back.dq);
  g.output("dk", back.dk);
  g.output("dv", back.dv);
  return g;
}

// A kernel of several flops a number and no elementary functions to speak of.
Graph kernel_graph() {
  Graph g("kernel");
  const Type type(DType::f32, {4096, 128}), rows(DType::f32, {4096}), vector(DType::f32, {128});
  const LayerNormGrad back = layer_norm_grad(g.input("x", type), g.input("scale", vector), g.input("mean", rows),
                                             g.input("rstd", rows), g.input("g", type));
  g.output("dx", back.dx);
  g.output("dscale", back.dscale);
  g.output("dbias", back.dbias);
  return g;
}

// A polynomial of many terms: a long chain, little memory.
Graph vector_graph() {
  Graph g("vector");
  const Value x = g.input("x", Type(DType::f32, {kChainElements}));
  Value y = x;
  for (int i = 0; i < kChainSteps / 2; ++i) y = add(mul(y, x), x);
  g.output("y", y);
  return g;
}

Graph elementary_graph() {
  Graph g("elementary");
  Value y = g.input("x", Type(DType::f32, {kChainElements}));
  for (int i = 0; i < 4; ++i) y = tanh(exp(y));
  g.output("y", y);
  return g;
}

// z = x + y: two reads, one write, of `bytes` in all.
Graph stream_graph(Bytes bytes) {
  Graph g("stream");
  const Type type(DType::f32, {bytes.count() / 12 / 16 * 16});
  g.output("z", add(g.input("x", type), g.input("y", type)));
  return g;
}

// Seven numbers are moved for each parameter, three of them to where they were read.
Graph update_graph(Bytes bytes) {
  Graph g("update");
  const Type type(DType::f32, {bytes.count() / 28 / 16 * 16}), scalar(DType::f32, {});
  const Adamw step = adamw(g.input("p", type), g.input("g", type), g.input("m", type), g.input("v", type),
                           g.input("scale", scalar), g.input("rate", scalar), g.input("count", Type(DType::i32, {})),
                           g.input("apply", Type(DType::boolean, {})), {});
  g.output("p", step.parameter);
  g.output("m", step.m);
  g.output("v", step.v);
  return g;
}

class Calibrator {
 public:
  Calibrator(Device& device, Clock& clock, const CalibrateOptions& options)
      : device_(device), clock_(clock), options_(options), each_(options.quick ? 0.3 : 2) {}

  Result<std::vector<CalibratedFact>> run() {
    const int threads = device_.target().threads;
    add({"threads", static_cast<double>(threads), CatalogUnit::number, 0, "threads that a run uses"});
    for (CalibratedFact& fact : TRY(measure_links(Seconds(options_.quick ? 0.6 : 4.0), clock_))) add(std::move(fact));
    TRY(call(threads));
    TRY(memory());
    TRY(elementary());
    TRY(chain());
    TRY(rate("kernel.f32", kernel_graph(), "layer_norm_grad, 4096 x 128"));
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (!computes(device_, dtype)) continue;
      const std::string type(name_of(dtype));
      TRY(rate("matmul." + type, matmul_graph(dtype, kMatmul), fmt::format("contract {0} x {0} x {0}", kMatmul)));
      TRY(rate("contraction." + type, contraction_graph(dtype), "a product of 2048 x 768 x 1536 and its gradients"));
      TRY(attention_rates("attention." + type, &attention_graph, dtype, "causal attention"));
      TRY(attention_rates("attention_grad." + type, &attention_grad_graph, dtype, "gradient of causal attention"));
    }
    if (!options_.disk_folder.empty()) {
      const Bytes bytes = (options_.quick ? 64 : 256) * kMiB;
      for (CalibratedFact& fact : TRY(measure_disk(options_.disk_folder, bytes, clock_))) add(std::move(fact));
    }
    return std::move(facts_);
  }

 private:
  void add(CalibratedFact fact) {
    if (options_.told) options_.told(fact);
    facts_.push_back(std::move(fact));
  }

  Result<Sample> sample(Graph graph, Work* work = nullptr) { return sample(std::move(graph), work, each_); }
  Result<Sample> sample(Graph graph, Work* work, Seconds budget) {
    const std::unique_ptr<MicroRun> run = TRY(MicroRun::make(device_, std::move(graph)));
    if (work != nullptr) *work = run->work();
    return run->measure(clock_, budget);
  }

  static std::string times(std::string how, const Sample& s) {
    return fmt::format("{}, lower quarter of {}", std::move(how), s.runs);
  }

  // Two sums that the second level holds, one four times the other: what does not grow is the start of a kernel by the
  // team, what grows is their bandwidth.
  Status call(int threads) {
    const long l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    const Bytes size = l2 > 0 ? Bytes(static_cast<std::int64_t>(l2)) * threads : kMiB;
    Work small, large;
    const Sample one = TRY(sample(stream_graph(size * 0.125), &small)),
                 four = TRY(sample(stream_graph(size * 0.5), &large));
    const Bytes more = (large.read + large.written) - (small.read + small.written);
    const Seconds growth = std::max(four.time - one.time, four.time * 0.05);
    const BytesPerSecond bandwidth = more / growth;
    call_ = std::max(one.time - (small.read + small.written) / bandwidth, one.time * 0.01);
    const std::string how = fmt::format("x + y, {} and {} in all", to_string(small.read + small.written),
                                        to_string(large.read + large.written));
    const double spread = std::max(one.spread, four.spread);
    add({"call", call_.count(), CatalogUnit::seconds, spread, how});
    if (l2 > 0) add_cache("l2", size, bandwidth, spread, fmt::format("what the system says, times {}", threads), how);
    return {};
  }

  // Memory, and the level between it and the second. The system tells the size of the third, not how much of it
  // others leave: it ends where a sum, half as large again each time, is no longer nearer to its bandwidth than to
  // memory's.
  Status memory() {
    const Bytes l3(std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
    const Bytes large = std::clamp(l3 * 1.5, kLeast, kMost);
    const auto [memory, spread, how] = TRY(stream(large, each_));
    memory_ = memory;
    add({"memory.bandwidth", memory.count(), CatalogUnit::bytes_per_second, spread, how});
    Work work;
    const Sample s = TRY(sample(update_graph(large), &work));
    add({"memory.update", ((work.read + work.written) / s.time).count(), CatalogUnit::bytes_per_second, s.spread,
         times(fmt::format("adamw in place, {} in all", to_string(work.read + work.written)), s)});
    if (caches_.empty()) return {};
    Bytes holds = caches_.back().size * 4;
    if (holds > l3) return {};
    const auto [third, third_spread, third_how] = TRY(stream(holds, each_));
    if (third < memory * 1.2) return {};
    for (Bytes next = holds * 1.5; next <= std::min(l3, large); next = next * 1.5) {
      if (TRY(stream(next, each_ * 0.25)).bandwidth < (third + memory) * 0.5) break;
      holds = next;
    }
    add_cache("l3", holds, third, third_spread, "the largest x + y nearer to its bandwidth than to memory's",
              third_how);
    return {};
  }

  struct Stream {
    BytesPerSecond bandwidth;
    double spread = 0;
    std::string how;
  };
  Result<Stream> stream(Bytes bytes, Seconds budget) {
    Work work;
    const Sample s = TRY(sample(stream_graph(bytes), &work, budget));
    const Bytes moved = work.read + work.written;
    return Stream{moved / std::max(s.time - call_, s.time * 0.1), s.spread,
                  times(fmt::format("x + y, {} in all", to_string(moved)), s)};
  }

  void add_cache(const std::string& level, Bytes size, BytesPerSecond bandwidth, double spread, std::string how_large,
                 std::string how_fast) {
    caches_.push_back({size, bandwidth});
    add({"cache." + level + ".size", static_cast<double>(size.count()), CatalogUnit::bytes, 0, std::move(how_large)});
    add({"cache." + level + ".bandwidth", bandwidth.count(), CatalogUnit::bytes_per_second, spread,
         std::move(how_fast)});
  }

  // What moving takes where the same is done over and over, as perf says it.
  Seconds moving(const Work& work) const {
    const Bytes bytes = work.read + work.written;
    for (const Cache& cache : caches_) {
      if (bytes <= cache.size) return bytes / cache.bandwidth;
    }
    return bytes / memory_;
  }

  // The same products with once and twice as many exponentials: two equations for the two rates.
  Status attention_rates(const std::string& key, Graph (*graph)(DType, std::int64_t), DType dtype, const char* what) {
    Work few, many;
    const Sample s4 = TRY(sample(graph(dtype, 4), &few)), s8 = TRY(sample(graph(dtype, 8), &many));
    const auto flops4 = static_cast<double>(few.flops), exps4 = static_cast<double>(few.transcendentals);
    const auto flops8 = static_cast<double>(many.flops), exps8 = static_cast<double>(many.transcendentals);
    const double t4 = s4.time.count(), t8 = s8.time.count();
    const double determinant = flops4 * exps8 - flops8 * exps4;
    const double a_flop = std::max((t4 * exps8 - t8 * exps4) / determinant, 0.1 * t4 / flops4);
    const double an_exp = std::max((flops4 * t8 - flops8 * t4) / determinant, 0.01 * t4 / exps4);
    const double spread = std::max(s4.spread, s8.spread);
    const std::string how = fmt::format("{}, 8 x 256, 4 heads of 64 and 8 of 32", what);
    add({key, 1 / a_flop, CatalogUnit::flop_rate, spread, how});
    add({key + ".elementary", 1 / an_exp, CatalogUnit::per_second, spread, how});
    return {};
  }

  Status chain() {
    Work work;
    const Sample s = TRY(sample(vector_graph(), &work));
    const Seconds time = std::max(s.time - call_ - moving(work), s.time * 0.1);
    add({"chain.f32", kChainSteps * static_cast<double>(kChainElements) / time.count(), CatalogUnit::per_second,
         s.spread, times(fmt::format("a chain of {} ops on 512 Ki numbers", kChainSteps), s)});
    return {};
  }

  // Net of the call, of elementary functions and of moving, as perf adds them.
  Status rate(const std::string& key, Graph graph, std::string how) {
    Work work;
    const Sample s = TRY(sample(std::move(graph), &work));
    const Seconds apart = call_ + Seconds(static_cast<double>(work.transcendentals) * elementary_) + moving(work);
    const Seconds time = std::max(s.time - apart, s.time * 0.1);
    add({key, static_cast<double>(work.flops) / time.count(), CatalogUnit::flop_rate, s.spread,
         times(std::move(how), s)});
    return {};
  }

  Status elementary() {
    Work work;
    const Sample s = TRY(sample(elementary_graph(), &work));
    elementary_ =
        std::max(s.time - call_ - moving(work), s.time * 0.1).count() / static_cast<double>(work.transcendentals);
    add({"elementary.f32", 1 / elementary_, CatalogUnit::per_second, s.spread,
         times("exp and tanh on 512 Ki numbers", s)});
    return {};
  }

  struct Cache {
    Bytes size;
    BytesPerSecond bandwidth;
  };

  Device& device_;
  Clock& clock_;
  const CalibrateOptions& options_;
  const Seconds each_;  // for one figure
  Seconds call_;
  double elementary_ = 0;      // seconds of one
  std::vector<Cache> caches_;  // smallest first
  BytesPerSecond memory_;
  std::vector<CalibratedFact> facts_;
};

}  // namespace

Result<std::vector<CalibratedFact>> calibrate(Device& device, Clock& clock, const CalibrateOptions& options) {
  return Calibrator(device, clock, options).run();
}

std::string value_text(const CalibratedFact& fact) {
  switch (fact.unit) {
    case CatalogUnit::flop_rate: return fmt::format("{:.4g} GFLOP/s", fact.value * 1e-9);
    case CatalogUnit::bytes_per_second: return fmt::format("{:.4g} GB/s", fact.value * 1e-9);
    case CatalogUnit::per_second: return fmt::format("{:.4g} G/s", fact.value * 1e-9);
    case CatalogUnit::bytes: return fmt::format("{} KiB", static_cast<std::int64_t>(fact.value) / 1024);
    case CatalogUnit::seconds: return fmt::format("{:.4g} us", fact.value * 1e6);
    default: return fmt::format("{:.6g}", fact.value);
  }
}

std::string calibrated_entry(std::int64_t threads) { return fmt::format("{}-{}", kThisMachine, threads); }

std::string catalog_text(const std::vector<CalibratedFact>& facts, std::string_view entry, std::string_view machine,
                         std::string_view date) {
  std::string text = fmt::format(
      "# Written by `systole calibrate`; holds for this machine and this number of threads.\n"
      "systole_catalog: 1\nentries:\n  {}:\n    kind: cpu\n    doc: \"{}\"\n    calibrated: true\n    facts:\n",
      entry, machine);
  for (const CalibratedFact& fact : facts) {
    const std::string spread = fact.spread > 0 ? fmt::format(", spread {:.1f}%", 100 * fact.spread) : "";
    text += fmt::format("      {}: {{ value: {}, source: \"{}{}\", date: {} }}\n", fact.key, value_text(fact), fact.how,
                        spread, date);
  }
  return text;
}

}  // namespace systole
