// top_k selects a row's values one at a time: each is the first after the previous one in descending order, lower index
// first among equals, so no state is stored. route: an expert's count in `wanted` is the position of its next choice.
// Roofline: a few numbers per token; top_k reads its row k times.

#include "execute/backends/cpu/kernels/routing.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// x at i comes before y at j: the larger one, or the lower index among equals (and among NaNs, which are last).
inline bool before(float x, i64 i, float y, i64 j) {
  const bool no_x = x != x, no_y = y != y;
  if (no_x || no_y) return no_x == no_y ? i < j : no_y;
  return x == y ? i < j : x > y;
}

template <typename T>
void top_of_row(const T* x, i64 n, i64 k, T* values, std::int32_t* indices) {
  i64 last = -1;
  for (i64 j = 0; j < k; ++j) {
    i64 best = -1;
    for (i64 i = 0; i < n; ++i) {
      const float here = to_f32(x[i]);
      if (last >= 0 && !before(to_f32(x[last]), last, here, i)) continue;
      if (best < 0 || before(here, i, to_f32(x[best]), best)) best = i;
    }
    values[j] = x[best];
    indices[j] = static_cast<std::int32_t>(best);
    last = best;
  }
}

void route_group(const RouteArgs& args, i64 g) {
  const i64 places = args.experts * args.capacity, n = args.tokens * args.k;
  std::int32_t *choice = args.choice + g * places, *token = args.token + g * places,
               *wanted = args.wanted + g * args.experts;
  for (i64 i = 0; i < places; ++i) choice[i] = token[i] = -1;
  for (i64 e = 0; e < args.experts; ++e) wanted[e] = 0;
  for (i64 i = 0; i < n; ++i) {
    const i64 expert = args.chosen[g * n + i];
    if (expert < 0 || expert >= args.experts) continue;
    const i64 place = wanted[expert]++;
    if (place >= args.capacity) continue;
    choice[expert * args.capacity + place] = static_cast<std::int32_t>(i);
    token[expert * args.capacity + place] = static_cast<std::int32_t>(i / args.k);
  }
}

}  // namespace

KernelReport top_k(const TopKArgs& args) {
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    const T* x = static_cast<const T*>(args.x);
    T* values = static_cast<T*>(args.values);
    parallel_blocks(args.threads, args.rows, rows_per_part(args.n * args.k * 4), [&](i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row)
        top_of_row(x + row * args.n, args.n, args.k, values + row * args.k, args.indices + row * args.k);
    });
  });
  const i64 size = size_of(args.elem);
  return {0, 0, 0, 0, args.rows * args.n * size, args.rows * args.k * (size + 4)};
}

KernelReport route(const RouteArgs& args) {
  parallel_blocks(args.threads, args.groups, 1, [&](i64 begin, i64 end) {
    for (i64 g = begin; g < end; ++g) route_group(args, g);
  });
  const i64 results = args.groups * args.experts * (2 * args.capacity + 1);
  return {0, 0, 0, 0, args.groups * args.tokens * args.k * 4, results * 4};
}

}  // namespace systole::cpu::SYSTOLE_ISA
