// Rates of the kernels on the sizes of GPT-2 124M and of the quickstart, relative to two yardsticks measured in the
// same run: the f32 multiply-add rate of this instruction set, and the memory's copy rate. Threads: 1 and all cores.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "execute/backends/cpu/kernels/kernels.h"
#include "ground/base/philox.h"

namespace systole::cpu {
namespace {

int cores() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

const Kernels& kernels() { return kernels_of(best_isa()); }

// Aligned data of small numbers, of any type.
struct Data {
  std::vector<std::uint64_t> words;
  explicit Data(std::int64_t bytes) : words(static_cast<std::size_t>(bytes / 8 + 9)) {}
  void* at() { return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(words.data()) + 63) / 64 * 64); }
};

Data numbers(Elem elem, std::int64_t n) {
  Data data(n * size_of(elem));
  PhiloxStream random(1);
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(random.uniform() * 2 - 1);
    std::uint32_t bits;
    __builtin_memcpy(&bits, &v, 4);
    if (elem == Elem::f32) {
      static_cast<float*>(data.at())[i] = v;
    } else {
      static_cast<std::uint16_t*>(data.at())[i] = static_cast<std::uint16_t>(bits >> 16);
    }
  }
  return data;
}

template <typename Run>
void measure(benchmark::State& state, const Run& run) {
  KernelReport report{};
  for (auto _ : state) report = run();
  const auto rate = [&](std::int64_t n) {
    return benchmark::Counter(static_cast<double>(n) * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate);
  };
  state.counters["flop/s"] = rate(report.flops);
  state.counters["B/s"] = rate(report.bytes_read + report.bytes_written);
}

void copy(benchmark::State& state) {
  const std::int64_t n = 16 << 20;
  Data x = numbers(Elem::f32, n), y(n * 4);
  CopyArgs args{};
  args.src = x.at();
  args.dst = y.at();
  args.elem_size = 4;
  args.operand_elements = n;
  args.ndim = 1;
  args.size[0] = n;
  args.src_stride[0] = args.dst_stride[0] = 1;
  args.threads = static_cast<int>(state.range(0));
  measure(state, [&] { return kernels().copy(args); });
}

// gelu_tanh of [4096, 3072] with a bias: the chain of a feed-forward block between its contractions.
void chain_gelu(benchmark::State& state) {
  const std::int64_t n = 4096 * 3072;
  Data x = numbers(Elem::bf16, n), bias = numbers(Elem::bf16, 3072), y(n * 2);
  const ChainStep steps[] = {{.op = ChainOp::load, .elem = Elem::bf16, .dst = 0, .slot = 0},
                             {.op = ChainOp::load, .elem = Elem::bf16, .dst = 1, .slot = 1, .pattern = {1, 3072}},
                             {.op = ChainOp::add, .elem = Elem::bf16, .dst = 0, .a = 0, .b = 1},
                             {.op = ChainOp::gelu_tanh, .elem = Elem::bf16, .dst = 0, .a = 0},
                             {.op = ChainOp::store, .elem = Elem::bf16, .a = 0, .slot = 2}};
  void* const pointers[] = {x.at(), bias.at(), y.at()};
  measure(state, [&] { return kernels().chain({steps, 5, pointers, n, static_cast<int>(state.range(0))}); });
}

void adamw(benchmark::State& state) {
  const std::int64_t n = 8 << 20;
  Data p = numbers(Elem::f32, n), g = numbers(Elem::f32, n), m = numbers(Elem::f32, n), v(n * 4);
  const float scale = 1, rate = 1e-3f;
  const std::int32_t count = 10;
  const std::uint8_t apply = 1;
  measure(state, [&] {
    return kernels().adamw(
        {p.at(),    g.at(),    m.at(),    v.at(),    p.at(), m.at(), v.at(),
         Elem::f32, Elem::f32, Elem::f32, Elem::f32, n,      &scale, &rate,
         &count,    &apply,    0.9,       0.95,      1e-8,   0.1,    static_cast<int>(state.range(0))});
  });
}

void layer_norm(benchmark::State& state) {
  const std::int64_t rows = 4096, n = 768;
  Data x = numbers(Elem::bf16, rows * n), scale = numbers(Elem::f32, n), bias = numbers(Elem::f32, n), y(rows * n * 2),
       mean(rows * 4), rstd(rows * 4);
  measure(state, [&] {
    return kernels().layer_norm({x.at(), scale.at(), bias.at(), y.at(), static_cast<float*>(mean.at()),
                                 static_cast<float*>(rstd.at()), Elem::bf16, Elem::f32, rows, n, 1e-5,
                                 static_cast<int>(state.range(0))});
  });
}

void layer_norm_grad(benchmark::State& state) {
  const std::int64_t rows = 4096, n = 768;
  Data x = numbers(Elem::bf16, rows * n), g = numbers(Elem::bf16, rows * n), scale = numbers(Elem::f32, n),
       mean = numbers(Elem::f32, rows), rstd = numbers(Elem::f32, rows);
  Data dx(rows * n * 2), dscale(n * 4), dbias(n * 4), workspace(norm_grad_workspace(rows, n, 2));
  measure(state, [&] {
    return kernels().layer_norm_grad(
        {x.at(), scale.at(), static_cast<float*>(mean.at()), static_cast<float*>(rstd.at()), g.at(), dx.at(),
         dscale.at(), dbias.at(), Elem::bf16, Elem::f32, rows, n, workspace.at(), static_cast<int>(state.range(0))});
  });
}

void cross_entropy(benchmark::State& state) {
  const std::int64_t rows = 256, n = 50304;
  Data x = numbers(Elem::bf16, rows * n), loss(rows * 4), lse(rows * 4), labels(rows * 4);
  measure(state, [&] {
    return kernels().cross_entropy({x.at(), static_cast<std::int32_t*>(labels.at()), static_cast<float*>(loss.at()),
                                    static_cast<float*>(lse.at()), Elem::bf16, rows, n,
                                    static_cast<int>(state.range(0))});
  });
}

void bias_gradient(benchmark::State& state) {
  const std::int64_t rows = 4096, n = 3072;
  Data x = numbers(Elem::bf16, rows * n), y(n * 4);
  ReduceArgs args{};
  args.kind = ReduceKind::sum;
  args.x = x.at();
  args.y = y.at();
  args.elem = Elem::bf16;
  args.y_elem = Elem::f32;
  args.ndim = 2;
  args.size[0] = rows;
  args.size[1] = n;
  args.reduced[0] = true;
  args.threads = static_cast<int>(state.range(0));
  measure(state, [&] { return kernels().reduce(args); });
}

void dropout(benchmark::State& state) {
  const std::int64_t n = 4096 * 768, key = 3;
  Data x = numbers(Elem::bf16, n), y(n * 2);
  measure(state, [&] {
    return kernels().dropout(
        {x.at(), y.at(), Elem::bf16, n, {&key, &key, &key, &key, 768}, 0.1, static_cast<int>(state.range(0))});
  });
}

// Products of a server with the matrices of SmolLM2 135M, as many of them in turn as `bytes` hold, of one row (a decode
// of one sequence) and more.
struct Served {
  int threads;
  std::int64_t rows, n, k, copies;
  explicit Served(const benchmark::State& state, std::int64_t bytes_of_eight_weights, std::int64_t bytes)
      : threads(static_cast<int>(state.range(0))),
        rows(state.range(1)),
        n(state.range(2)),
        k(state.range(3)),
        copies(std::max<std::int64_t>(1, bytes * 8 / (n * k * bytes_of_eight_weights))) {}
};

void random_bytes(Data& data, std::int64_t bytes) {
  PhiloxStream random(2);
  for (std::int64_t i = 0; i < bytes; i += 4) {
    const std::uint32_t four = random.next_u32();
    __builtin_memcpy(static_cast<char*>(data.at()) + i, &four, 4);
  }
}

template <typename Product>
void in_turn(benchmark::State& state, const Served& s, const Product& product) {
  std::int64_t next = 0;
  for (auto _ : state) {
    product(next);
    next = (next + 1) % s.copies;
  }
  state.counters["weights/s"] = benchmark::Counter(
      static_cast<double>(s.n * s.k) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

template <std::int64_t kMiB>
void contract_int8(benchmark::State& state) {
  const Served s(state, 8, kMiB << 20);
  Data x = numbers(Elem::f32, s.rows * s.k), w(s.copies * s.n * s.k), scale = numbers(Elem::f32, s.n),
       y(s.rows * s.n * 4), workspace(contract_int8_workspace(s.rows, s.k));
  random_bytes(w, s.copies * s.n * s.k);
  in_turn(state, s, [&](std::int64_t copy) {
    kernels().contract_int8({static_cast<float*>(x.at()), static_cast<std::int8_t*>(w.at()) + copy * s.n * s.k,
                             static_cast<float*>(scale.at()), static_cast<float*>(y.at()), s.rows, s.n, s.k,
                             best_int8_unit(best_isa()), workspace.at(), s.threads});
  });
}

template <std::int64_t kMiB>
void contract_int4(benchmark::State& state) {
  const Served s(state, 5, kMiB << 20);
  Data x = numbers(Elem::f32, s.rows * s.k), w(s.copies * s.n * s.k / 2), scales(s.copies * s.n * s.k / 8),
       y(s.rows * s.n * 4), workspace(contract_int4_workspace(s.rows, s.k));
  random_bytes(w, s.copies * s.n * s.k / 2);
  in_turn(state, s, [&](std::int64_t copy) {
    kernels().contract_int4({static_cast<float*>(x.at()), static_cast<std::uint8_t*>(w.at()) + copy * s.n * s.k / 2,
                             static_cast<std::uint16_t*>(scales.at()) + copy * s.n * s.k / 16,
                             static_cast<float*>(y.at()), s.rows, s.n, s.k, best_int8_unit(best_isa()), workspace.at(),
                             s.threads});
  });
}

AttentionShape shape_of(const benchmark::State& state) {
  const std::int64_t t = state.range(1), d = state.range(2), h = state.range(3);
  return {4, t, t, h, h, d, true, 0.125};
}

void attention(benchmark::State& state) {
  const AttentionShape z = shape_of(state);
  const std::int64_t n = z.b * z.t * z.h * z.d;
  const int threads = static_cast<int>(state.range(0));
  Data q = numbers(Elem::bf16, n), k = numbers(Elem::bf16, n), v = numbers(Elem::bf16, n), o(n * 2),
       lse(z.b * z.h * z.t * 4), workspace(attention_workspace(z, threads));
  measure(state, [&] {
    return kernels().attention({z, Elem::bf16, q.at(), k.at(), v.at(), nullptr, nullptr, nullptr, o.at(),
                                static_cast<float*>(lse.at()), workspace.at(), threads});
  });
}

void attention_grad(benchmark::State& state) {
  const AttentionShape z = shape_of(state);
  const std::int64_t n = z.b * z.t * z.h * z.d;
  const int threads = static_cast<int>(state.range(0));
  Data q = numbers(Elem::bf16, n), k = numbers(Elem::bf16, n), v = numbers(Elem::bf16, n), o = numbers(Elem::bf16, n),
       g = numbers(Elem::bf16, n);
  Data lse = numbers(Elem::f32, z.b * z.h * z.t), dq(n * 2), dk(n * 2), dv(n * 2),
       workspace(attention_grad_workspace(z, threads));
  measure(state, [&] {
    return kernels().attention_grad({z, Elem::bf16, q.at(), k.at(), v.at(), o.at(), static_cast<float*>(lse.at()),
                                     g.at(), nullptr, nullptr, nullptr, dq.at(), dk.at(), dv.at(), workspace.at(),
                                     threads});
  });
}

// The yardstick: independent multiply-adds in registers.
void fused_512(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    asm volatile(
        "vfmadd231ps %%zmm0, %%zmm0, %%zmm4\n vfmadd231ps %%zmm0, %%zmm0, %%zmm5\n vfmadd231ps %%zmm0, %%zmm0, %%zmm6\n"
        "vfmadd231ps %%zmm0, %%zmm0, %%zmm7\n vfmadd231ps %%zmm0, %%zmm0, %%zmm8\n vfmadd231ps %%zmm0, %%zmm0, %%zmm9\n"
        "vfmadd231ps %%zmm0, %%zmm0, %%zmm10\n vfmadd231ps %%zmm0, %%zmm0, %%zmm11\n vfmadd231ps %%zmm0, %%zmm0, "
        "%%zmm12\n"
        "vfmadd231ps %%zmm0, %%zmm0, %%zmm13\n vfmadd231ps %%zmm0, %%zmm0, %%zmm14\n vfmadd231ps %%zmm0, %%zmm0, "
        "%%zmm15\n" ::
            : "xmm0", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
              "xmm15");
  }
}

void f32_multiply_add_of_one_thread(benchmark::State& state) {
  if (!supports(Isa::avx512)) {
    state.SkipWithError("this yardstick is for AVX-512");
    return;
  }
  for (auto _ : state) fused_512(100000);
  state.counters["flop/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 100000 * 12 * 16 * 2, benchmark::Counter::kIsRate);
}

void by_threads(benchmark::internal::Benchmark* b) {
  b->Arg(1);
  if (cores() > 1) b->Arg(cores());
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}
void by_shape(benchmark::internal::Benchmark* b) {
  for (const int threads : {1, cores()}) {
    b->Args({threads, 256, 32, 4});
    b->Args({threads, 512, 64, 12});
  }
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}

void by_served(benchmark::internal::Benchmark* b) {
  for (const int threads : {1, cores()}) {
    for (const auto& [n, k] :
         std::initializer_list<std::pair<int, int>>{{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}})
      for (const int rows : {1, 2, 3, 4, 6, 8, 12, 15, 16, 24, 32}) b->Args({threads, rows, n, k});
  }
  b->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK(f32_multiply_add_of_one_thread);
BENCHMARK(copy)->Apply(by_threads);
BENCHMARK(chain_gelu)->Apply(by_threads);
BENCHMARK(adamw)->Apply(by_threads);
BENCHMARK(layer_norm)->Apply(by_threads);
BENCHMARK(layer_norm_grad)->Apply(by_threads);
BENCHMARK(cross_entropy)->Apply(by_threads);
BENCHMARK(bias_gradient)->Apply(by_threads);
BENCHMARK(dropout)->Apply(by_threads);
BENCHMARK(contract_int8<8>)->Apply(by_served);
BENCHMARK(contract_int8<96>)->Apply(by_served);
BENCHMARK(contract_int4<8>)->Apply(by_served);
BENCHMARK(contract_int4<96>)->Apply(by_served);
BENCHMARK(attention)->Apply(by_shape);
BENCHMARK(attention_grad)->Apply(by_shape);

}  // namespace
}  // namespace systole::cpu

BENCHMARK_MAIN();
