// rms_norm, layer_norm and their gradients (formulas: describe/ops/rms_norm.cc, layer_norm.cc). A row is read two or
// three times, but from memory once. The gradients of scale and bias are summed in f32 over blocks of rows into the
// workspace, then over the blocks, both in order. Roofline: memory.

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

template <typename T>
inline const T* row_of(const void* base, i64 row, i64 n) {
  return static_cast<const T*>(base) + row * n;
}
template <typename T>
inline T* row_of(void* base, i64 row, i64 n) {
  return static_cast<T*>(base) + row * n;
}

// Calls fn(T*, S*) with the types of x and of scale.
template <typename Fn>
inline void visit_pair(Elem elem, Elem scale_elem, const Fn& fn) {
  visit_float(elem, [&](auto* t) { visit_float(scale_elem, [&](auto* s) { fn(t, s); }); });
}

inline float rsqrt_of(float x) { return 1.0f / __builtin_sqrtf(x); }

// The number of rows per pass. Sums across lanes are sequential within a row, but independent between rows; a group of
// rows stays in the first-level cache for the next pass.
constexpr i64 kMostRows = 16;
inline i64 group_rows(i64 row_bytes) { return greater(1, lesser(kMostRows, 16384 / greater(1, row_bytes))); }

// fn(first, end) for groups of the rows [begin, end).
template <typename Fn>
inline void over_groups(i64 begin, i64 end, i64 row_bytes, const Fn& fn) {
  const i64 group = group_rows(row_bytes);
  for (i64 row = begin; row < end; row += group) fn(row, lesser(end, row + group));
}

template <typename T, typename S>
void rms_norm_rows(const RmsNormArgs& args, i64 begin, i64 end) {
  const i64 n = args.n;
  const S* scale = static_cast<const S*>(args.scale);
  for (i64 row = begin; row < end; ++row) {
    const T* x = row_of<T>(args.x, row, n);
    const float squares = row_sum(n, [&](i64 i) {
      const F v = get(x, i, n);
      return v * v;
    });
    args.rstd[row] = rsqrt_of(squares / static_cast<float>(n) + static_cast<float>(args.eps));
  }
  for (i64 row = begin; row < end; ++row) {
    const T* x = row_of<T>(args.x, row, n);
    T* y = row_of<T>(args.y, row, n);
    const float rstd = args.rstd[row];
    for (i64 i = 0; i < n; i += kLanes) put(y, i, n, get(x, i, n) * rstd * get(scale, i, n));
  }
}

template <typename T, typename S>
void layer_norm_rows(const LayerNormArgs& args, i64 begin, i64 end) {
  const i64 n = args.n;
  const S *scale = static_cast<const S*>(args.scale), *bias = static_cast<const S*>(args.bias);
  for (i64 row = begin; row < end; ++row) {
    const T* x = row_of<T>(args.x, row, n);
    args.mean[row] = row_sum(n, [&](i64 i) { return get(x, i, n); }) / static_cast<float>(n);
  }
  for (i64 row = begin; row < end; ++row) {
    const T* x = row_of<T>(args.x, row, n);
    const float mean = args.mean[row];
    const float squares = row_sum(n, [&](i64 i) {
      const F v = within(get(x, i, n) - mean, i, n);
      return v * v;
    });
    args.rstd[row] = rsqrt_of(squares / static_cast<float>(n) + static_cast<float>(args.eps));
  }
  for (i64 row = begin; row < end; ++row) {
    const T* x = row_of<T>(args.x, row, n);
    T* y = row_of<T>(args.y, row, n);
    const float mean = args.mean[row], rstd = args.rstd[row];
    for (i64 i = 0; i < n; i += kLanes) put(y, i, n, (get(x, i, n) - mean) * rstd * get(scale, i, n) + get(bias, i, n));
  }
}

template <typename T, typename S>
void rms_norm_grad_rows(const RmsNormGradArgs& args, i64 begin, i64 end, float* dscale) {
  const i64 n = args.n;
  const S* scale = static_cast<const S*>(args.scale);
  float means[kMostRows];
  for (i64 row = begin; row < end; ++row) {
    const T *x = row_of<T>(args.x, row, n), *g = row_of<T>(args.g, row, n);
    const float rstd = args.rstd[row];
    const float sum = row_sum(n, [&](i64 i) {
      const F normal = get(x, i, n) * rstd, gradient = get(g, i, n);
      if (dscale != nullptr) put(dscale, i, n, get(dscale, i, n) + gradient * normal);
      return gradient * get(scale, i, n) * normal;
    });
    means[row - begin] = sum / static_cast<float>(n);
  }
  for (i64 row = begin; row < end; ++row) {
    const T *x = row_of<T>(args.x, row, n), *g = row_of<T>(args.g, row, n);
    T* dx = row_of<T>(args.dx, row, n);
    const float rstd = args.rstd[row], mean = means[row - begin];
    for (i64 i = 0; i < n; i += kLanes) {
      put(dx, i, n, rstd * (get(g, i, n) * get(scale, i, n) - get(x, i, n) * rstd * mean));
    }
  }
}

template <typename T, typename S>
void layer_norm_grad_rows(const LayerNormGradArgs& args, i64 begin, i64 end, float* dscale, float* dbias) {
  const i64 n = args.n;
  const S* scale = static_cast<const S*>(args.scale);
  const float count = static_cast<float>(n);
  struct Means {
    float h, hn;
  };
  Means means[kMostRows];
  for (i64 row = begin; row < end; ++row) {
    const T *x = row_of<T>(args.x, row, n), *g = row_of<T>(args.g, row, n);
    const float mean = args.mean[row], rstd = args.rstd[row];
    F sums_h[2] = {};
    const float sum_hn = row_sum(n, [&](i64 i) {
      const F normal = within((get(x, i, n) - mean) * rstd, i, n), gradient = get(g, i, n);
      if (dscale != nullptr) {
        put(dscale, i, n, get(dscale, i, n) + gradient * normal);
        put(dbias, i, n, get(dbias, i, n) + gradient);
      }
      const F h = gradient * get(scale, i, n);
      sums_h[(i / kLanes) & 1] += h;
      return h * normal;
    });
    means[row - begin] = {sum_lanes(sums_h[0] + sums_h[1]) / count, sum_hn / count};
  }
  for (i64 row = begin; row < end; ++row) {
    const T *x = row_of<T>(args.x, row, n), *g = row_of<T>(args.g, row, n);
    T* dx = row_of<T>(args.dx, row, n);
    const float mean = args.mean[row], rstd = args.rstd[row];
    const Means of = means[row - begin];
    for (i64 i = 0; i < n; i += kLanes) {
      const F normal = (get(x, i, n) - mean) * rstd;
      put(dx, i, n, rstd * (get(g, i, n) * get(scale, i, n) - of.h - normal * of.hn));
    }
  }
}

// out[i] = Σ over blocks of partial[block · stride + i].
void sum_blocks(const float* partial, i64 blocks, i64 stride, void* out, Elem elem, i64 n) {
  visit_float(elem, [&](auto* type) {
    using S = typename Pointee<decltype(type)>::type;
    for (i64 i = 0; i < n; i += kLanes) {
      F sum = {};
      for (i64 block = 0; block < blocks; ++block) sum += get(partial + block * stride, i, n);
      put(static_cast<S*>(out), i, n, sum);
    }
  });
}

// fn(first, end, partial) for groups of rows; partial: the block's `vectors` sums, cleared first (null if none are
// requested).
template <typename Fn>
void over_blocks(i64 rows, i64 n, i64 row_bytes, int vectors, void* workspace, int threads, const Fn& fn) {
  const i64 block = norm_block_rows(rows);
  parallel(threads, norm_blocks(rows), Schedule::contiguous, [&](i64 part, int) {
    float* partial = vectors == 0 ? nullptr : static_cast<float*>(workspace) + part * n * vectors;
    for (i64 i = 0; i < n * vectors; ++i) partial[i] = 0;
    over_groups(part * block, lesser(rows, (part + 1) * block), row_bytes,
                [&](i64 first, i64 end) { fn(first, end, partial); });
  });
}

}  // namespace

KernelReport rms_norm(const RmsNormArgs& args) {
  visit_pair(args.elem, args.scale_elem, [&](auto* t, auto* s) {
    using T = typename Pointee<decltype(t)>::type;
    using S = typename Pointee<decltype(s)>::type;
    parallel_blocks(args.threads, args.rows, rows_per_part(args.n * 4), [&](i64 begin, i64 end) {
      over_groups(begin, end, args.n * size_of(args.elem),
                  [&](i64 first, i64 last) { rms_norm_rows<T, S>(args, first, last); });
    });
  });
  const i64 bytes = args.rows * args.n * size_of(args.elem);
  return {args.rows * (4 * args.n + 2), args.rows, 0, 0, bytes + args.n * size_of(args.scale_elem),
          bytes + args.rows * 4};
}

KernelReport layer_norm(const LayerNormArgs& args) {
  visit_pair(args.elem, args.scale_elem, [&](auto* t, auto* s) {
    using T = typename Pointee<decltype(t)>::type;
    using S = typename Pointee<decltype(s)>::type;
    parallel_blocks(args.threads, args.rows, rows_per_part(args.n * 4), [&](i64 begin, i64 end) {
      over_groups(begin, end, args.n * size_of(args.elem),
                  [&](i64 first, i64 last) { layer_norm_rows<T, S>(args, first, last); });
    });
  });
  const i64 bytes = args.rows * args.n * size_of(args.elem);
  return {args.rows * (7 * args.n + 3), args.rows, 0, 0, bytes + 2 * args.n * size_of(args.scale_elem),
          bytes + args.rows * 8};
}

KernelReport rms_norm_grad(const RmsNormGradArgs& args) {
  const i64 n = args.n;
  const int vectors = args.dscale == nullptr ? 0 : 1;
  visit_pair(args.elem, args.scale_elem, [&](auto* t, auto* s) {
    using T = typename Pointee<decltype(t)>::type;
    using S = typename Pointee<decltype(s)>::type;
    over_blocks(args.rows, n, 2 * n * size_of(args.elem), vectors, args.workspace, args.threads,
                [&](i64 first, i64 end, float* partial) { rms_norm_grad_rows<T, S>(args, first, end, partial); });
  });
  if (vectors != 0)
    sum_blocks(static_cast<const float*>(args.workspace), norm_blocks(args.rows), n, args.dscale, args.scale_elem, n);
  const i64 bytes = args.rows * n * size_of(args.elem), vector_bytes = n * size_of(args.scale_elem);
  return {args.rows * ((7 + 2 * vectors) * n + 1), 0, 0, 0, 2 * bytes + vector_bytes + args.rows * 4,
          bytes + vectors * vector_bytes};
}

KernelReport layer_norm_grad(const LayerNormGradArgs& args) {
  const i64 n = args.n, blocks = norm_blocks(args.rows);
  const int vectors = args.dscale == nullptr ? 0 : 2;
  visit_pair(args.elem, args.scale_elem, [&](auto* t, auto* s) {
    using T = typename Pointee<decltype(t)>::type;
    using S = typename Pointee<decltype(s)>::type;
    over_blocks(args.rows, n, 2 * n * size_of(args.elem), vectors, args.workspace, args.threads,
                [&](i64 first, i64 end, float* partial) {
                  layer_norm_grad_rows<T, S>(args, first, end, partial, partial == nullptr ? nullptr : partial + n);
                });
  });
  if (vectors != 0) {
    const float* partial = static_cast<const float*>(args.workspace);
    sum_blocks(partial, blocks, 2 * n, args.dscale, args.scale_elem, n);
    sum_blocks(partial + n, blocks, 2 * n, args.dbias, args.scale_elem, n);
  }
  const i64 bytes = args.rows * n * size_of(args.elem), vector_bytes = n * size_of(args.scale_elem);
  return {args.rows * ((vectors != 0 ? 13 : 10) * n + 2),
          0,
          0,
          0,
          2 * bytes + vector_bytes + args.rows * 8,
          bytes + vectors * vector_bytes};
}

}  // namespace systole::cpu::SYSTOLE_ISA
