#include "execute/calibrate/calibrate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "execute/calibrate/measured_kernels.h"
#include "execute/calibrate/micro_graphs.h"
#include "execute/calibrate/micro_run.h"
#include "execute/calibrate/serving_rates.h"
#include "ground/base/error.h"

namespace systole {
namespace {

constexpr std::int64_t kMatmul = 2048;
constexpr int kChainSteps = 20, kFunctionTimes = 4;
constexpr Bytes kLeast = 192 * kMiB, kMost = 512 * kMiB;  // sizes for measuring memory

bool computes(const Device& device, DType dtype) {
  const std::vector<DType>& dtypes = device.target().dtypes;
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

// A mixture: `first` and `second` units of two kinds of work take `seconds` together.
struct Mixed {
  double first, second, seconds;
};
// Solves two mixtures for the seconds per unit of each kind; clamped, so noise makes neither zero.
std::pair<double, double> two_rates(const Mixed& a, const Mixed& b) {
  const double determinant = a.first * b.second - b.first * a.second;
  const double second =
      std::max((a.first * b.seconds - b.first * a.seconds) / determinant, 0.01 * a.seconds / a.second);
  return {rest_of(Seconds(a.seconds), Seconds(second * a.second)).count() / a.first, second};
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
    TRY(serial());
    TRY(functions());
    TRY(rate("kernel.f32", kernel_graph(), "layer_norm_grad, 4096 x 128"));
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (!computes(device_, dtype)) continue;
      const std::string type(name_of(dtype));
      TRY(rate("matmul." + type, matmul_graph(dtype, kMatmul), fmt::format("contract {0} x {0} x {0}", kMatmul)));
      TRY(products(dtype));
      TRY(kernels(dtype));
      TRY(attention_rates(dtype, false));
      TRY(attention_rates(dtype, true));
    }
    if (options_.serving != nullptr) {
      for (CalibratedFact& fact : TRY(measure_serving(*options_.serving, clock_, each_ * 0.1, call_)))
        add(std::move(fact));
    }
    if (!options_.disk_folder.empty()) {
      const Bytes bytes = (options_.quick ? 64 : 256) * kMiB;
      for (CalibratedFact& fact : TRY(measure_disk(options_.disk_folder, bytes, clock_))) add(std::move(fact));
    }
    return std::move(facts_);
  }

 private:
  void add(CalibratedFact fact) {
    CHECK(std::isfinite(fact.value) && fact.value >= 0, "{} is {}, which no catalog has", fact.key, fact.value);
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

  // Two sums that fit in L2, one four times the other: the constant part is the launch of a kernel on all threads, the
  // growth is the bandwidth.
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

  // Memory and L3. The system reports the size of L3, but not how much of it other programs leave. So L3 ends where a
  // sum, 1.5 times larger each time, is no longer nearer to L3's bandwidth than to memory's.
  Status memory() {
    const Bytes l3(std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
    const Bytes large = std::clamp(l3 * 1.5, kLeast, kMost);
    const auto [memory, spread, how] = TRY(stream(large, each_));
    add({"memory.bandwidth", memory.count(), CatalogUnit::bytes_per_second, spread, how});
    read_ = TRY(reads("memory", large));
    write_ = writes("memory", memory, read_);
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
    const BytesPerSecond read = TRY(reads("cache.l3", holds));
    add_cache("l3", holds, read, third_spread, "the largest x + y nearer to its bandwidth than to memory's", third_how);
    caches_.back().write = writes("cache.l3", third, read);
    return {};
  }

  // Bandwidth of repeated reads without writes.
  Result<BytesPerSecond> reads(const std::string& level, Bytes bytes) {
    Graph g("reads");
    g.output("y", sum_of_squares(g.input("x", Type(DType::f32, {bytes.count() / 4 / 16 * 16}))));
    const Sample s = TRY(sample(std::move(g), nullptr, each_ * 0.5));
    const BytesPerSecond read = bytes / rest_of(s.time, call_);
    if (level == "memory")
      add({"memory.read", read.count(), CatalogUnit::bytes_per_second, s.spread,
           times(fmt::format("sum of squares of {}", to_string(bytes)), s)});
    return read;
  }
  // Write bandwidth: the rest of x + y, which has two reads and a write; at most the read bandwidth.
  BytesPerSecond writes(const std::string& level, BytesPerSecond both, BytesPerSecond read) {
    const double slow = std::max(3 / both.count() - 2 / read.count(), 1 / read.count());
    add({level + ".write", 1 / slow, CatalogUnit::bytes_per_second, 0, "x + y less its reads"});
    return BytesPerSecond(1 / slow);
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
    return Stream{moved / rest_of(s.time, call_), s.spread,
                  times(fmt::format("x + y, {} in all", to_string(moved)), s)};
  }

  void add_cache(const std::string& level, Bytes size, BytesPerSecond bandwidth, double spread, std::string how_large,
                 std::string how_fast) {
    caches_.push_back({size, bandwidth, bandwidth});
    add({"cache." + level + ".size", static_cast<double>(size.count()), CatalogUnit::bytes, 0, std::move(how_large)});
    add({"cache." + level + ".bandwidth", bandwidth.count(), CatalogUnit::bytes_per_second, spread,
         std::move(how_fast)});
  }

  // Time of memory traffic of a repeated kernel, by the model of perf.
  Seconds moving(const Work& work) const { return moving(work, work.read + work.written); }
  // The same if `bytes` are touched between two runs.
  Seconds moving(const Work& work, Bytes bytes) const {
    for (const Cache& cache : caches_) {
      if (bytes <= cache.size) return work.read / cache.bandwidth + work.written / cache.write;
    }
    return work.read / read_ + work.written / write_;
  }
  // The compute part of `both`, which contains memory traffic, by the model of perf (side_by_side in
  // predict/perf/op_time.cc).
  Seconds working(Seconds both, Seconds moves) const {
    Seconds works = both - moves * serial_;
    if (works < moves) works = serial_ > 0 ? (both - moves) * (1 / serial_) : moves;
    return std::clamp(works, both * 0.1, both);
  }

  // The same matmuls with once and twice as many exponentials: two equations for the two rates.
  Status attention_rates(DType dtype, bool gradient) {
    const char* op = gradient ? "attention_grad" : "attention";
    const auto measured = [&](std::int64_t heads) {
      return in_turn(op, each_ * 0.7, [&](Graph& g, const Named& name) {
        gradient ? put_attention_grad(g, name, dtype, heads) : put_attention(g, name, dtype, heads);
      });
    };
    const InTurn few = TRY(measured(4)), many = TRY(measured(8));
    const auto [a_flop, an_exp] = two_rates({few.flops, few.transcendentals, few.whole.count()},
                                            {many.flops, many.transcendentals, many.whole.count()});
    const double spread = std::max(few.spread, many.spread);
    const std::string key = fmt::format("{}.{}", op, name_of(dtype)),
                      how = fmt::format("{}causal attention, 8 x 256, 4 heads of 64 and 8 of 32, in turn with products",
                                        gradient ? "gradient of " : "");
    add({key, 1 / a_flop, CatalogUnit::flop_rate, spread, how});
    add({key + ".elementary", 1 / an_exp, CatalogUnit::per_second, spread, how});
    return {};
  }

  // Chains of sums: the time per op, where a load or store counts as one f32 op, and the time per op that rounds to
  // bf16.
  Status chain() {
    const auto measured = [&](DType dtype) {
      return in_turn("fusion", each_ * 0.4,
                     [&](Graph& g, const Named& name) { put_sums(g, name, dtype, kChainSteps, kChainElements); });
    };
    const auto elements = static_cast<double>(kChainElements);
    const std::string how = fmt::format("a chain of {} ops on 512 Ki numbers, in turn with products", kChainSteps);
    const InTurn plain = TRY(measured(DType::f32));
    step_ = working(plain.whole, plain.moving).count() / elements / (kChainSteps + 2);
    add({"chain.f32", 1 / step_, CatalogUnit::per_second, plain.spread, how});
    add({"step.f32", 1 / step_, CatalogUnit::per_second, plain.spread, how});
    if (!computes(device_, DType::bf16)) return {};
    const InTurn half = TRY(measured(DType::bf16));
    const double rounded = (working(half.whole, half.moving).count() / elements - 2 * step_) / kChainSteps;
    add({"step.bf16", 1 / std::max(rounded, step_ * 0.1), CatalogUnit::per_second, half.spread, how});
    return {};
  }

  // The share of the shorter of traffic and compute that does not overlap: measured on a chain in memory whose compute
  // takes about as long as its traffic.
  Status serial() {
    Work work;
    const std::int64_t elements = (kLeast.count() / 8) / 16 * 16;
    const double moves = 4 / read_.count() + 4 / write_.count();  // seconds of an element
    const int steps = std::clamp(static_cast<int>(moves / step_) - 2, 1, 60);
    Graph g("chain");
    put_sums(g, Named{0}, DType::f32, steps, elements);
    const Sample s = TRY(sample(std::move(g), &work, each_ * 0.5));
    const double works = step_ * (steps + 2), whole = rest_of(s.time, call_).count() / static_cast<double>(elements);
    serial_ = std::clamp((whole - std::max(works, moves)) / std::min(works, moves), 0.0, 1.0);
    add({"serial", serial_, CatalogUnit::number, s.spread,
         times(fmt::format("a chain of {} ops on {}: what is not hidden of the shorter of moving and working", steps,
                           to_string(kLeast)),
               s)});
    return {};
  }

  Status functions() {
    for (const NamedFunction& function : measured_functions()) {
      const InTurn m = TRY(in_turn("fusion", each_ * 0.2, [&](Graph& g, const Named& name) {
        Value y = g.input(name("x"), Type(DType::f32, {kChainElements}));
        for (int i = 0; i < kFunctionTimes; ++i) y = function.make(y);
        g.output(name("y"), y);
      }));
      const double each =
          (working(m.whole, m.moving).count() / static_cast<double>(kChainElements) - 2 * step_) / kFunctionTimes;
      add({std::string("function.") + function.op, 1 / std::max(each, step_), CatalogUnit::per_second, m.spread,
           fmt::format("{} times on 512 Ki numbers, in turn with products", kFunctionTimes)});
    }
    return {};
  }

  // An op under the conditions of a training step: several copies of it, which together exceed the first cache,
  // alternate with other kernels. A kernel that runs alone repeatedly is up to a fifth faster than in any step.
  struct InTurn {
    Seconds whole, moving;  // of one op, without its launch
    double flops = 0, transcendentals = 0, spread = 0;
  };
  template <typename Make>
  Result<InTurn> in_turn(std::string_view op, Seconds budget, const Make& make) {
    Graph one("one");
    make(one, Named{0});
    Bytes each;
    for (const GraphInput& input : one.inputs()) each += one.type(input.value).bytes();
    for (const GraphOutput& output : one.outputs()) each += one.type(output.value).bytes();
    const Bytes all = caches_.empty() ? 16 * kMiB : caches_[0].size * 4;
    const int copies = static_cast<int>(std::clamp<std::int64_t>(all.count() / each.count(), 2, 16));
    Graph g("in turn");
    for (int i = 0; i < copies; ++i) {
      make(g, Named{i});
      op == "contract" ? put_chain(g, Named{i}) : put_products(g, Named{i});
    }
    const std::unique_ptr<MicroRun> run = TRY(MicroRun::make(device_, std::move(g)));
    const Work work = run->work_of_one(op);
    const Sample s = TRY(run->measure_op(clock_, budget, op));
    return InTurn{rest_of(s.time, call_), moving(work, all), static_cast<double>(work.flops),
                  static_cast<double>(work.transcendentals), s.spread};
  }
  void put_products(Graph& g, const Named& name) const {
    const Type type(computes(device_, DType::bf16) ? DType::bf16 : DType::f32, {512, 512});
    const Value w = g.input(name("between_w"), type);
    g.output(name("between"), contract(contract(g.input(name("between_x"), type), w, "mk,kn->mn"), w, "mk,kn->mn"));
  }
  static void put_chain(Graph& g, const Named& name) {
    g.output(name("between"), gelu_tanh(exp(g.input(name("between_x"), Type(DType::f32, {kChainElements})))));
  }

  // A wide and a thin matmul: two equations for the time per flop and per element.
  Status products(DType dtype) {
    struct Sizes {
      std::int64_t rows, k, n;
    };
    constexpr Sizes kWide{1024, 768, 768}, kThin{2048, 128, 512};
    for (const char* layout : {"nn", "nt", "tn"}) {
      const auto measured = [&](const Sizes& of) {
        return in_turn("contract", each_ * 0.4,
                       [&](Graph& g, const Named& name) { put_product(g, name, dtype, layout, of.rows, of.k, of.n); });
      };
      const auto elements = [](const Sizes& of) { return static_cast<double>(of.rows * (of.k + of.n) + of.k * of.n); };
      const InTurn wide = TRY(measured(kWide)), thin = TRY(measured(kThin));
      const auto [a_flop, an_element] = two_rates({wide.flops, elements(kWide), wide.whole.count()},
                                                  {thin.flops, elements(kThin), thin.whole.count()});
      const std::string key = fmt::format("product.{}.{}", name_of(dtype), layout),
                        how = "1024 x 768 x 768 and 2048 x 128 x 512, in turn with a chain";
      const double spread = std::max(wide.spread, thin.spread);
      add({key, 1 / a_flop, CatalogUnit::flop_rate, spread, how});
      add({key + ".elements", 1 / an_element, CatalogUnit::per_second, spread, how});
    }
    return {};
  }

  // Each kernel on rows of 1024 elements; also on rows of 128 if a row has a cost of its own.
  Status kernels(DType dtype) {
    constexpr std::int64_t kWide = 1024, kThin = 128, kElements = 1 << 18;
    for (const NamedKernel& kernel : measured_kernels()) {
      double spread = 0;
      const auto measured = [&](std::int64_t n) -> Result<double> {
        const InTurn m = TRY(in_turn(kernel.op, each_ * 0.2, [&](Graph& g, const Named& name) {
          kernel.make(g, name, dtype, kElements / n, n);
        }));
        spread = std::max(spread, m.spread);
        return working(m.whole, m.moving).count();
      };
      const double wide = TRY(measured(kernel.by_row ? kWide : kThin));
      const auto wide_rows = static_cast<double>(kElements / kWide), thin_rows = static_cast<double>(kElements / kThin);
      const double thin = kernel.by_row ? TRY(measured(kThin)) : wide;
      const double row = std::clamp((thin - wide) / (thin_rows - wide_rows), 0.0, 0.9 * wide / wide_rows);
      const std::string key = fmt::format("kernel.{}.{}", kernel.op, name_of(dtype));
      add({key, static_cast<double>(kElements) / (wide - row * wide_rows), CatalogUnit::per_second, spread,
           "on 256 Ki numbers, in turn with products"});
      if (kernel.by_row) add({key + ".row", row, CatalogUnit::seconds, spread, "rows of 128 and of 1024"});
    }
    return {};
  }

  // The flop rate without launch, elementary functions and memory traffic, as perf adds them.
  Status rate(const std::string& key, Graph graph, std::string how) {
    Work work;
    const Sample s = TRY(sample(std::move(graph), &work));
    const Seconds apart = call_ + Seconds(static_cast<double>(work.transcendentals) * elementary_) + moving(work);
    add({key, static_cast<double>(work.flops) / rest_of(s.time, apart).count(), CatalogUnit::flop_rate, s.spread,
         times(std::move(how), s)});
    return {};
  }

  Status elementary() {
    Work work;
    const Sample s = TRY(sample(elementary_graph(), &work));
    elementary_ = rest_of(s.time, call_ + moving(work)).count() / static_cast<double>(work.transcendentals);
    add({"elementary.f32", 1 / elementary_, CatalogUnit::per_second, s.spread,
         times("exp and tanh on 512 Ki numbers", s)});
    return {};
  }

  struct Cache {
    Bytes size;
    BytesPerSecond bandwidth, write;
  };

  Device& device_;
  Clock& clock_;
  const CalibrateOptions& options_;
  const Seconds each_;  // time budget of one figure
  Seconds call_;
  double elementary_ = 0;        // seconds per elementary function
  std::vector<Cache> caches_;    // smallest first
  BytesPerSecond read_, write_;  // of memory
  double step_ = 0;              // seconds per element of a plain op in a chain
  double serial_ = 1;            // 1 until measured
  std::vector<CalibratedFact> facts_;
};

}  // namespace

Result<std::vector<CalibratedFact>> calibrate(Device& device, Clock& clock, const CalibrateOptions& options) {
  return Calibrator(device, clock, options).run();
}

}  // namespace systole
