// Runs a chain (chain.h): for each block of 512 elements, each step goes once over its registers in whole vectors;
// elements past the end are computed but not stored.

#include "execute/backends/cpu/kernels/chain.h"

#include "execute/backends/cpu/kernels/chain_memory.h"
#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

using StepFn = void (*)(const ChainStep&, const Block&);

template <typename Fn>
inline void map2(const ChainStep& s, const Block& b, Fn fn) {
  const float *x = b.f(s.a), *z = b.f(s.b);
  float* y = b.f(s.dst);
  if (s.elem == Elem::bf16) {
    for (i64 i = 0; i < b.padded; i += kLanes) store(y + i, round_bf16(fn(load(x + i), load(z + i))));
  } else {
    for (i64 i = 0; i < b.padded; i += kLanes) store(y + i, fn(load(x + i), load(z + i)));
  }
}

// Integers wrap around.
struct Add {
  static F on(F a, F b) { return a + b; }
  static std::int64_t on(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Sub {
  static F on(F a, F b) { return a - b; }
  static std::int64_t on(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
};
struct Mul {
  static F on(F a, F b) { return a * b; }
  static std::int64_t on(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct Div {
  static F on(F a, F b) { return a / b; }
  static std::int64_t on(std::int64_t a, std::int64_t) { return a; }  // never used: the op accepts floats only
};
struct Max {
  static F on(F a, F b) { return max_nan(a, b); }
  static std::int64_t on(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
};
struct Min {
  static F on(F a, F b) { return min_nan(a, b); }
  static std::int64_t on(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
};

template <typename Op>
void number(const ChainStep& s, const Block& b) {
  if (s.elem == Elem::i64) {
    for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = Op::on(b.w(s.a)[i], b.w(s.b)[i]);
  } else if (s.elem == Elem::i32) {
    const std::int32_t *x = b.i(s.a), *z = b.i(s.b);
    std::int32_t* y = b.i(s.dst);
    for (i64 i = 0; i < b.padded; ++i)
      y[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(Op::on(std::int64_t{x[i]}, std::int64_t{z[i]})));
  } else {
    map2(s, b, [](F x, F z) { return Op::on(x, z); });
  }
}

struct Lt {
  template <typename T>
  static auto on(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <typename T>
  static auto on(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <typename T>
  static auto on(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <typename T>
  static auto on(T a, T b) {
    return a >= b;
  }
};
struct Eq {
  template <typename T>
  static auto on(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static auto on(T a, T b) {
    return a != b;
  }
};

template <typename Op>
void compare(const ChainStep& s, const Block& b) {
  std::int32_t* y = b.i(s.dst);
  if (s.from == Elem::i64) {
    for (i64 i = 0; i < b.n; ++i) y[i] = Op::on(b.w(s.a)[i], b.w(s.b)[i]) ? -1 : 0;
  } else if (s.from == Elem::f32 || s.from == Elem::bf16) {
    for (i64 i = 0; i < b.padded; i += kLanes) store_i(y + i, Op::on(load(b.f(s.a) + i), load(b.f(s.b) + i)));
  } else {
    for (i64 i = 0; i < b.padded; i += kLanes) store_i(y + i, Op::on(load_i(b.i(s.a) + i), load_i(b.i(s.b) + i)));
  }
}

void logical_and_step(const ChainStep& s, const Block& b) {
  for (i64 i = 0; i < b.padded; i += kLanes) store_i(b.i(s.dst) + i, load_i(b.i(s.a) + i) & load_i(b.i(s.b) + i));
}

void select_step(const ChainStep& s, const Block& b) {
  const std::int32_t* pred = b.i(s.a);
  if (s.elem == Elem::i64) {
    for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = pred[i] != 0 ? b.w(s.b)[i] : b.w(s.c)[i];
    return;
  }
  for (i64 i = 0; i < b.padded; i += kLanes) {
    const I mask = load_i(pred + i);
    store_i(b.i(s.dst) + i, (mask & load_i(b.i(s.b) + i)) | (~mask & load_i(b.i(s.c) + i)));
  }
}

void is_finite_step(const ChainStep& s, const Block& b) {
  for (i64 i = 0; i < b.padded; i += kLanes) store_i(b.i(s.dst) + i, vabs(load(b.f(s.a) + i)) < splat(kInf));
}

void neg_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return -x; });
}
void exp_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return exp_f(x); });
}
void log_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return log_f(x); });
}
void tanh_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return tanh_f(x); });
}
void sigmoid_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return sigmoid_f(x); });
}
void silu_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return x * sigmoid_f(x); });
}
void relu_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return max_nan(x, splat(0)); });
}
void sqrt_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return sqrt_f(x); });
}
void rsqrt_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return 1.0f / sqrt_f(x); });
}

constexpr float kSqrtHalf = 0.707106781186547524f, kInvSqrt2Pi = 0.398942280401432678f;
constexpr float kSqrt2OverPi = 0.797884560802865356f, kGeluCubic = 0.044715f;

void gelu_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return 0.5f * x * (1.0f + erf_f(x * kSqrtHalf)); });
}
void gelu_tanh_step(const ChainStep& s, const Block& b) {
  map1(s, b, [](F x) { return 0.5f * x * (1.0f + tanh_f(kSqrt2OverPi * (x + kGeluCubic * (x * x * x)))); });
}
void gelu_grad_step(const ChainStep& s, const Block& b) {
  map2(s, b, [](F x, F g) {
    const F cdf = 0.5f * (1.0f + erf_f(x * kSqrtHalf));
    // x · pdf becomes 0 long before x² overflows: the bound avoids inf · 0.
    const F bounded = vmin(vmax(x, splat(-20.0f)), splat(20.0f));
    const F pdf = kInvSqrt2Pi * exp_f(-0.5f * (bounded * bounded));
    return blend(x != x, x, g * (cdf + bounded * pdf));
  });
}
void gelu_tanh_grad_step(const ChainStep& s, const Block& b) {
  map2(s, b, [](F x, F g) {
    const F x2 = x * x;
    const F t = tanh_f(kSqrt2OverPi * (x + kGeluCubic * (x2 * x)));
    const F slope = kSqrt2OverPi * (1.0f + 3 * kGeluCubic * x2);
    return g * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
  });
}
void silu_grad_step(const ChainStep& s, const Block& b) {
  map2(s, b, [](F x, F g) {
    const F y = sigmoid_f(x);
    return g * (y * (1.0f + x * (1.0f - y)));
  });
}

constexpr StepFn kSteps[kNumChainOps] = {
    load_step,   store_step,       constant_step,  iota_step,      cast_step,           neg_step,       exp_step,
    log_step,    tanh_step,        sigmoid_step,   gelu_step,      gelu_tanh_step,      silu_step,      relu_step,
    rsqrt_step,  sqrt_step,        is_finite_step, number<Add>,    number<Sub>,         number<Mul>,    number<Div>,
    number<Max>, number<Min>,      compare<Lt>,    compare<Le>,    compare<Gt>,         compare<Ge>,    compare<Eq>,
    compare<Ne>, logical_and_step, select_step,    gelu_grad_step, gelu_tanh_grad_step, silu_grad_step,
};

KernelReport report_of(const ChainArgs& args) {
  KernelReport report{};
  std::uint64_t read = 0;  // bit set of slots: an operand may be loaded with several patterns
  for (i64 k = 0; k < args.num_steps; ++k) {
    const ChainStep& s = args.steps[k];
    report.flops += cost_of(s.op).flops * args.n;
    report.transcendentals += cost_of(s.op).transcendentals * args.n;
    const i64 distinct = s.pattern.period == 0 ? args.n : lesser(s.pattern.period, args.n);
    if (s.op == ChainOp::load && ((read >> s.slot) & 1) == 0) {
      report.bytes_read += distinct * size_of(s.elem);
      read |= std::uint64_t{1} << s.slot;
    }
    if (s.op == ChainOp::store) report.bytes_written += args.n * size_of(s.elem);
  }
  return report;
}

}  // namespace

KernelReport chain(const ChainArgs& args) {
  // 16 blocks per part: one access to the team's shared loop per 8,192 elements.
  parallel_blocks(args.threads, args.n, 16 * kBlock, [&](i64 from, i64 to) {
    Registers registers;
    for (i64 begin = from; begin < to; begin += kBlock) {
      const i64 n = lesser(kBlock, to - begin);
      const Block block{registers, args.pointers, begin, n, ceil_div(n, kLanes) * kLanes};
      for (i64 k = 0; k < args.num_steps; ++k) kSteps[static_cast<int>(args.steps[k].op)](args.steps[k], block);
    }
  });
  return report_of(args);
}

}  // namespace systole::cpu::SYSTOLE_ISA
