// Reductions over any set of dims. Dims of size 1 are dropped and neighbours of one kind are merged, so kept and
// reduced dims alternate. If the innermost is reduced, an output is a sum of runs; if it is kept, tiles of columns are
// accumulated down the reduced dims. Few outputs over long runs (sum_all) are summed in chunks first. Parts and order
// depend on the sizes alone. Roofline: memory.
//
// Depth of a sum of n (error ≤ depth · 2^-24 relative to Σ|x|): rows n / (4 lanes) + 6; columns 128 + n / 128.

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// The canonical form: up to kMaxDims dims of alternating kind, with the strides of x.
struct Form {
  int ndim = 0;
  i64 size[kMaxDims], stride[kMaxDims];
  bool reduced[kMaxDims];
  i64 total = 1, outputs = 1;
};

Form canonical(const ReduceArgs& args) {
  Form form;
  i64 stride = 1;
  for (int k = args.ndim - 1; k >= 0; --k) {  // innermost first, reversed below
    form.total *= args.size[k];
    if (!args.reduced[k]) form.outputs *= args.size[k];
    if (args.size[k] == 1) continue;
    if (form.ndim > 0 && form.reduced[form.ndim - 1] == args.reduced[k]) {
      form.size[form.ndim - 1] *= args.size[k];
    } else {
      form.size[form.ndim] = args.size[k];
      form.stride[form.ndim] = stride;
      form.reduced[form.ndim++] = args.reduced[k];
    }
    stride *= args.size[k];
  }
  if (form.ndim == 0) {
    form.size[0] = 1;
    form.stride[0] = 1;
    form.reduced[0] = true;
    form.ndim = 1;
  }
  return form;  // innermost first
}

// Offset in x of the index-th point over the dims of one kind (innermost first), except dim `but`.
i64 offset_of(const Form& form, bool reduced, int but, i64 index) {
  i64 offset = 0;
  for (int k = 0; k < form.ndim; ++k) {
    if (form.reduced[k] != reduced || k == but) continue;
    offset += index % form.size[k] * form.stride[k];
    index /= form.size[k];
  }
  return offset;
}

i64 count_of(const Form& form, bool reduced, int but) {
  i64 count = 1;
  for (int k = 0; k < form.ndim; ++k) {
    if (form.reduced[k] == reduced && k != but) count *= form.size[k];
  }
  return count;
}

struct Sum {
  static constexpr float kEmpty = 0;
  static F on(F a, F x) { return a + x; }
  static float join(float a, float b) { return a + b; }
  static float across(F v) { return sum_lanes(v); }
  template <typename T>
  static std::int64_t integer(std::int64_t a, T x) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(std::int64_t{x}));
  }
  template <typename T>
  static std::int64_t integer_empty() {
    return 0;
  }
};
struct SumOfSquares {
  static constexpr float kEmpty = 0;
  static F on(F a, F x) { return a + x * x; }
  static float join(float a, float b) { return a + b; }
  static float across(F v) { return sum_lanes(v); }
  template <typename T>
  static std::int64_t integer(std::int64_t a, T x) {
    return Sum::integer(a, static_cast<std::int64_t>(static_cast<std::uint64_t>(std::int64_t{x}) *
                                                     static_cast<std::uint64_t>(std::int64_t{x})));
  }
  template <typename T>
  static std::int64_t integer_empty() {
    return 0;
  }
};
struct Max {
  static constexpr float kEmpty = -__builtin_inff();
  static F on(F a, F x) { return max_nan(a, x); }
  static float join(float a, float b) { return a < b || b != b ? b : a; }
  static float across(F v) { return max_lanes(v); }
  template <typename T>
  static std::int64_t integer(std::int64_t a, T x) {
    return a < x ? x : a;
  }
  template <typename T>
  static std::int64_t integer_empty() {
    return sizeof(T) == 8 ? -0x7fffffffffffffff - 1 : -0x80000000LL;
  }
};
struct Min {
  static constexpr float kEmpty = __builtin_inff();
  static F on(F a, F x) { return min_nan(a, x); }
  static float join(float a, float b) { return b < a || b != b ? b : a; }
  static float across(F v) { return min_lanes(v); }
  template <typename T>
  static std::int64_t integer(std::int64_t a, T x) {
    return x < a ? x : a;
  }
  template <typename T>
  static std::int64_t integer_empty() {
    return sizeof(T) == 8 ? 0x7fffffffffffffff : 0x7fffffff;
  }
};

// The destination of sums: f32 or bf16.
struct Out {
  void* y;
  Elem elem;
  void set(i64 i, float value) const {
    if (elem == Elem::f32) {
      static_cast<float*>(y)[i] = value;
    } else {
      set_f32(static_cast<Bf16*>(y) + i, value);
    }
  }
};

// One contiguous run.
template <typename Op, typename T>
float reduce_run(const T* x, i64 n) {
  F a[4] = {splat(Op::kEmpty), splat(Op::kEmpty), splat(Op::kEmpty), splat(Op::kEmpty)};
  i64 i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) a[k] = Op::on(a[k], load(x + i + k * kLanes));
  }
  const T fill = of_f32<T>(Op::kEmpty);
  for (; i < n; i += kLanes) a[0] = Op::on(a[0], get(x, i, n, fill));
  const float low = Op::join(Op::across(a[0]), Op::across(a[1])), high = Op::join(Op::across(a[2]), Op::across(a[3]));
  return Op::join(low, high);
}

constexpr i64 kChunk = 16384;       // elements of a long run
constexpr i64 kMaxPartials = 1024;  // on the stack

// outputs × run, both contiguous, few outputs: chunks of each run in parallel, then over the chunks in order.
template <typename Op, typename T>
void reduce_long_runs(const T* x, Out y, i64 outputs, i64 run, int threads) {
  const i64 most = kMaxPartials / outputs;
  const i64 chunk = greater(kChunk, ceil_div(ceil_div(run, most), 64) * 64), chunks = ceil_div(run, chunk);
  float partial[kMaxPartials];
  parallel(threads, outputs * chunks, Schedule::contiguous, [&](i64 part, int) {
    const i64 output = part / chunks, begin = part % chunks * chunk;
    partial[part] = reduce_run<Op>(x + output * run + begin, lesser(chunk, run - begin));
  });
  for (i64 output = 0; output < outputs; ++output) {
    float total = Op::kEmpty;
    for (i64 c = 0; c < chunks; ++c) total = Op::join(total, partial[output * chunks + c]);
    y.set(output, total);
  }
}

template <typename Op, typename T>
void reduce_rows(const Form& form, const T* x, Out y, int threads) {
  const i64 run = form.size[0], outer = count_of(form, true, 0);
  parallel_blocks(threads, form.outputs, rows_per_part(run * outer * 4), [&](i64 begin, i64 end) {
    for (i64 output = begin; output < end; ++output) {
      const i64 base = offset_of(form, false, -1, output);
      float total = Op::kEmpty;
      for (i64 r = 0; r < outer; ++r)
        total = Op::join(total, reduce_run<Op>(x + base + offset_of(form, true, 0, r), run));
      y.set(output, total);
    }
  });
}

constexpr i64 kTile = 128;   // columns accumulated at once
constexpr i64 kDepth = 128;  // rows summed before they are added to the total

template <typename Op, typename T>
void reduce_tile(const Form& form, const T* x, Out y, i64 first_output, i64 width, i64 rows) {
  float total[kTile], part[kTile];
  for (i64 i = 0; i < kTile; i += kLanes) store(total + i, splat(Op::kEmpty));
  const i64 whole = width / kLanes * kLanes;
  const bool plain = form.ndim == 2;  // [reduced, kept]: the reduced index is a multiple of one stride
  for (i64 first = 0; first < rows; first += kDepth) {
    for (i64 i = 0; i < kTile; i += kLanes) store(part + i, splat(Op::kEmpty));
    for (i64 r = first; r < lesser(rows, first + kDepth); ++r) {
      const T* row = x + (plain ? r * form.stride[1] : offset_of(form, true, -1, r));
      for (i64 i = 0; i < whole; i += kLanes) store(part + i, Op::on(load(part + i), load(row + i)));
      if (whole < width) store(part + whole, Op::on(load(part + whole), load_part(row + whole, width - whole, T{})));
    }
    for (i64 i = 0; i < width; ++i) total[i] = Op::join(total[i], part[i]);
  }
  for (i64 i = 0; i < width; ++i) y.set(first_output + i, total[i]);
}

template <typename Op, typename T>
void reduce_columns(const Form& form, const T* x, Out y, int threads) {
  const i64 columns = form.size[0], tiles = ceil_div(columns, kTile), outer = count_of(form, false, 0),
            rows = count_of(form, true, -1);
  parallel(threads, outer * tiles, Schedule::contiguous, [&](i64 part, int) {
    const i64 o = part / tiles, column = part % tiles * kTile;
    reduce_tile<Op>(form, x + offset_of(form, false, 0, o) + column, y, o * columns + column,
                    lesser(kTile, columns - column), rows);
  });
}

template <typename Op, typename T>
void reduce_floats(const Form& form, const T* x, Out y, int threads) {
  const bool rows = form.reduced[0], plain = form.ndim == 1 || (form.ndim == 2 && rows);
  if (rows && plain && form.outputs < 64 && form.size[0] > kChunk)
    return reduce_long_runs<Op>(x, y, form.outputs, form.size[0], threads);
  if (rows) return reduce_rows<Op>(form, x, y, threads);
  reduce_columns<Op>(form, x, y, threads);
}

void set_integer(void* y, Elem elem, i64 i, std::int64_t value) {
  switch (elem) {
    case Elem::i64: static_cast<std::int64_t*>(y)[i] = value; return;
    case Elem::f32: static_cast<float*>(y)[i] = static_cast<float>(value); return;
    default: static_cast<std::int32_t*>(y)[i] = static_cast<std::int32_t>(value);
  }
}

template <typename Op, typename T>
void reduce_integers(const Form& form, const ReduceArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  const i64 count = count_of(form, true, -1);
  parallel_blocks(args.threads, form.outputs, rows_per_part(count * 8), [&](i64 begin, i64 end) {
    for (i64 output = begin; output < end; ++output) {
      const i64 base = offset_of(form, false, -1, output);
      std::int64_t total = Op::template integer_empty<T>();
      for (i64 r = 0; r < count; ++r) total = Op::integer(total, x[base + offset_of(form, true, -1, r)]);
      set_integer(args.y, args.y_elem, output, total);
    }
  });
}

template <typename Op>
void reduce_with(const ReduceArgs& args, const Form& form) {
  switch (args.elem) {
    case Elem::i32: return reduce_integers<Op, std::int32_t>(form, args);
    case Elem::i64: return reduce_integers<Op, std::int64_t>(form, args);
    case Elem::boolean: return reduce_integers<Op, std::uint8_t>(form, args);
    default: break;
  }
  visit_float(args.elem, [&](auto* t) {
    using T = typename Pointee<decltype(t)>::type;
    reduce_floats<Op>(form, static_cast<const T*>(args.x), Out{args.y, args.y_elem}, args.threads);
  });
}

}  // namespace

KernelReport reduce(const ReduceArgs& args) {
  const Form form = canonical(args);
  switch (args.kind) {
    case ReduceKind::sum: reduce_with<Sum>(args, form); break;
    case ReduceKind::sum_of_squares: reduce_with<SumOfSquares>(args, form); break;
    case ReduceKind::max: reduce_with<Max>(args, form); break;
    case ReduceKind::min: reduce_with<Min>(args, form); break;
  }
  const i64 per_element = args.kind == ReduceKind::sum ? 1 : args.kind == ReduceKind::sum_of_squares ? 2 : 0;
  return {per_element * form.total, 0, 0, 0, form.total * size_of(args.elem), form.outputs * size_of(args.y_elem)};
}

}  // namespace systole::cpu::SYSTOLE_ISA
