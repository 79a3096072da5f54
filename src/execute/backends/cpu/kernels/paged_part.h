#pragma once
// A part of attention over pages (paged.cc): some queries of an entry and a kv head, and what they do with a block of
// keys. The functions that round are the same ones for every caller. For kernel sources only.

#include "execute/backends/cpu/kernels/attention_block.h"
#include "execute/backends/cpu/kernels/paged.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// Of some rows over some keys: sums of values [rows, w], maxima of scores and sums of weights [rows in whole vectors].
struct Sums {
  float *values, *top, *weight;
};

// Rows that go over a block of keys together: their scores stay in the first-level cache. A multiple of kLanes.
constexpr i64 kRowBlock = 48;

struct Rows {
  i64 begin, end;
};

struct Part {
  const PagedAttentionArgs& args;
  i64 b, kv, first, count;  // queries [first, first + count)
  float *keys, *values;     // [w, kKeyBlock], [kKeyBlock, w]
  float *scores, *queries, *factor, *factor_of_run;
  Sums of_run, all;

  Part(const PagedAttentionArgs& given, i64 entry, i64 kv_head, i64 begin, i64 number, int thread)
      : args(given), b(entry), kv(kv_head), first(begin), count(number) {
    const PagedShape& z = args.shape;
    const i64 w = width(), most = paged_rows(z);
    keys = static_cast<float*>(args.workspace) + thread * paged_thread_workspace(z);
    values = keys + kKeyBlock * w;
    scores = values + kKeyBlock * w;
    queries = scores + most * kKeyBlock;
    factor = queries + most * w;
    factor_of_run = factor + most;
    of_run = sums_at(factor_of_run + most);
    all = sums_at(factor_of_run + most + paged_sums(z));
  }

  i64 group() const { return paged_group(args.shape); }
  i64 width() const { return padded_head(args.shape.d); }
  i64 rows() const { return count * group(); }
  i64 whole_rows() const { return ceil_div(rows(), kLanes) * kLanes; }
  Sums sums_at(float* at) const {
    const i64 most = paged_rows(args.shape);
    return {at + 2 * most, at, at + most};
  }
  // Row r is query first + r / group of head kv * group + r % group. The first of a query's rows, in q and o:
  i64 element_of(i64 i) const { return ((b * args.shape.t + first + i) * args.shape.h + kv * group()) * args.shape.d; }
  // The positions of query first + i are [from(i), to(i)).
  i64 place(i64 i) const { return first + i + args.offset[b]; }
  i64 to(i64 i) const { return greater(0, lesser(place(i) + 1, args.shape.entries * args.shape.size)); }
  i64 from(i64 i) const { return args.shape.window > 0 ? greater(0, place(i) + 1 - args.shape.window) : 0; }
  // The part's positions, and those of its run i; its runs are [first_run, end_run).
  i64 begin() const { return from(0); }
  i64 end() const { return to(count - 1); }
  i64 first_run() const { return lesser(begin() / kKeyRun, paged_runs(args.shape) - 1); }
  i64 end_run() const { return greater(ceil_div(end(), kKeyRun), first_run() + 1); }
  i64 begin_of(i64 run) const { return greater(begin() / kKeyBlock * kKeyBlock, run * kKeyRun); }
  i64 end_of(i64 run) const { return lesser(end(), (run + 1) * kKeyRun); }
  // How far from j0 on row `row` sees into positions [j0, j1); no row before it sees further.
  i64 seen(i64 row, i64 j0, i64 j1) const { return greater(0, lesser(j1, to(row / group())) - j0); }

  template <typename Fn>
  void for_each_page(i64 j0, i64 j1, const Fn& fn) const;
  template <typename T>
  void pack_keys(i64 j0, i64 j1) const;
  template <typename T>
  bool values_in_place() const;
  template <typename T>
  void pack_values(i64 j0, i64 j1) const;
  template <typename T>
  void add_values(Rows r, i64 j0, i64 j1, float* sums) const;
  void clear(const Sums& sums) const;
  void move_maxima(Rows r, i64 j0, i64 j1, const Sums& sums) const;
  void merge(const Sums& run) const;
  template <typename T>
  void widen_queries() const;
  template <typename T>
  void attend(i64 j0, i64 j1, const Sums& sums) const;
  template <typename T>
  void finish() const;
};

// fn(j, count, at) for each page of positions [j0, j1): `count` positions from j on, the first of which is at element
// `at` of the pool, the next n d further; at is -1 in a page outside.
template <typename Fn>
void Part::for_each_page(i64 j0, i64 j1, const Fn& fn) const {
  const PagedShape& z = args.shape;
  i64 entry = j0 / z.size, inside = j0 % z.size;
  for (i64 j = j0; j < j1; ++entry, inside = 0) {
    const i64 page = args.table[b * z.entries + entry], number = lesser(z.size - inside, j1 - j);
    fn(j, number, page < 0 || page >= z.pages ? -1 : ((page * z.size + inside) * z.n + kv) * z.d);
    j += number;
  }
}

// Positions [j0, j1), transposed, in whole vectors. Columns past j1, and of pages outside, are 0.
template <typename T>
void Part::pack_keys(i64 j0, i64 j1) const {
  const PagedShape& z = args.shape;
  const T* k = static_cast<const T*>(args.k);
  i64 at[kKeyBlock];
  for (i64& place : at) place = -1;
  for_each_page(j0, j1, [&](i64 j, i64 number, i64 start) {
    if (start < 0) return;
    for (i64 i = 0; i < number; ++i) at[j - j0 + i] = start + i * z.n * z.d;
  });
  for (i64 j = 0; j < j1 - j0; j += kLanes) {
    bool whole = true;
    for (i64 i = 0; i < kLanes; ++i) whole = whole && at[j + i] >= 0;
    for (i64 c = 0; c < z.d; c += kLanes) {
      F tile[kLanes];
      if (whole && c + kLanes <= z.d) {
#pragma GCC unroll 16
        for (i64 i = 0; i < kLanes; ++i) tile[i] = load(k + at[j + i] + c);
        for (i64 i = 0; i < kLanes; ++i) __builtin_prefetch(static_cast<const T*>(args.v) + at[j + i] + c);
      } else {
        for (i64 i = 0; i < kLanes; ++i) tile[i] = at[j + i] >= 0 ? get(k + at[j + i], c, z.d) : F{};
      }
      transpose(tile);
#pragma GCC unroll 16
      for (i64 i = 0; i < kLanes; ++i) store(keys + (c + i) * kKeyBlock + j, tile[i]);
    }
  }
}

// Few rows take f32 values where they lie; for many it pays to pack them.
template <typename T>
bool Part::values_in_place() const {
  return sizeof(T) == sizeof(float) && args.shape.d == width() && rows() <= kFewPagedRows;
}

// Pages outside have zeros, which add nothing.
template <typename T>
void Part::pack_values(i64 j0, i64 j1) const {
  const PagedShape& z = args.shape;
  const i64 w = width();
  for_each_page(j0, j1, [&](i64 j, i64 number, i64 at) {
    float* to = values + (j - j0) * w;
    if (at >= 0) {
      widen_rows(static_cast<const T*>(args.v) + at, z.n * z.d, number, z.d, w, 1.0f, to);
    } else {
      for (i64 i = 0; i < number * w; i += kLanes) store(to + i, F{});
    }
  });
}

// Adds the values of positions [j0, j1), weighted by the scores of some rows, to sums.
template <typename T>
void Part::add_values(Rows r, i64 j0, i64 j1, float* sums) const {
  const i64 w = width();
  const auto add = [&](i64 j, i64 number, const float* x, i64 x_row) {
    product({scores + r.begin * kKeyBlock + (j - j0), kKeyBlock, 1}, x, x_row, sums + r.begin * w, w, r.end - r.begin,
            true, [&](i64 i, i64 n) {
              return Need{w, 0, seen(r.begin + i + n - 1, j, j + number)};
            });
  };
  if constexpr (sizeof(T) == sizeof(float)) {
    if (values_in_place<T>()) {
      for_each_page(j0, j1, [&](i64 j, i64 number, i64 at) {
        if (at >= 0) add(j, number, static_cast<const float*>(args.v) + at, args.shape.n * args.shape.d);
      });
      return;
    }
  }
  add(j0, j1 - j0, values, w);
}

void Part::clear(const Sums& sums) const {
  for (i64 i = 0; i < rows() * width(); i += kLanes) store(sums.values + i, F{});
  for (i64 r = 0; r < whole_rows(); ++r) {
    sums.top[r] = -kInf;
    sums.weight[r] = 0;
  }
}

// The scores of a row, masked: the lanes' maxima. Positions [start, last) of the block are seen.
inline F masked_maximum(float* row, i64 start, i64 last) {
  F best = splat(-kInf);
  if (start <= 0 && last >= kKeyBlock) {
#pragma GCC unroll 8
    for (i64 c = 0; c < kKeyBlock; c += kLanes) best = max_nan(best, load(row + c));
    return best;
  }
  for (i64 c = 0; c < kKeyBlock; c += kLanes) {
    F v = load(row + c);
    if (start > c || last < c + kLanes) {
      const auto low = static_cast<std::int32_t>(lesser(kLanes, greater(0, start - c))),
                 high = static_cast<std::int32_t>(lesser(kLanes, greater(0, last - c)));
      v = blend((lane_numbers() >= (I{} + low)) & (lane_numbers() < (I{} + high)), v, splat(-kInf));
      store(row + c, v);
    }
    best = max_nan(best, v);
  }
  return best;
}

// Masks the scores, updates their maxima, and rescales the sums to the new maxima.
void Part::move_maxima(Rows block, i64 j0, i64 j1, const Sums& sums) const {
  const i64 g = group();
  i64 i = block.begin / g, next = (i + 1) * g, last = lesser(to(i), j1) - j0, start = greater(from(i), j0) - j0;
  for (i64 r = block.begin; r < block.end; r += kLanes) {
    F best[kLanes];
    for (i64 lane = 0; lane < kLanes; ++lane) {
      if (r + lane == next && next < block.end) {
        ++i;
        next += g;
        last = lesser(to(i), j1) - j0;
        start = greater(from(i), j0) - j0;
      }
      best[lane] = r + lane < block.end ? masked_maximum(scores + (r + lane) * kKeyBlock, start, last) : splat(-kInf);
    }
    store(factor + r, move_maxima_of(best, sums.top + r));
  }
  rescale(block.end - block.begin, width(), factor + block.begin, sums.weight + block.begin,
          sums.values + block.begin * width());
}

// Merges the sums of a run into `all`. One function for all callers, so that they round alike.
__attribute__((noinline)) void Part::merge(const Sums& run) const {
  const i64 w = width();
  for (i64 r = 0; r < whole_rows(); r += kLanes) {
    const F old = load(all.top + r), of_keys = load(run.top + r), now = max_nan(old, of_keys),
            shift = blend(now == splat(-kInf), F{}, now);
    store(factor + r, old - shift);
    store(factor_of_run + r, exp_flushed(of_keys - shift));
    store(all.top + r, now);
  }
  rescale(rows(), w, factor, all.weight, all.values);
  for (i64 r = 0; r < rows(); ++r) {
    if (run.top[r] == -kInf) continue;
    all.weight[r] += run.weight[r] * factor_of_run[r];
    for (i64 c = r * w; c < (r + 1) * w; c += kLanes) {
      store(all.values + c, load(all.values + c) + load(run.values + c) * factor_of_run[r]);
    }
  }
}

template <typename T>
void Part::widen_queries() const {
  const PagedShape& z = args.shape;
  const i64 w = width(), g = group();
  for (i64 i = 0; i < count; ++i) {
    widen_rows(static_cast<const T*>(args.q) + element_of(i), z.d, g, z.d, w, static_cast<float>(z.scale),
               queries + i * g * w);
  }
}

// Adds positions [j0, j1), at most a block, to the sums of their run. One function for all callers, so that they round
// alike.
template <typename T>
__attribute__((noinline)) void Part::attend(i64 j0, i64 j1, const Sums& sums) const {
  const i64 w = width(), all_rows = rows();
  pack_keys<T>(j0, j1);
  if (!values_in_place<T>()) pack_values<T>(j0, j1);
  for (i64 first_row = 0; first_row < all_rows; first_row += kRowBlock) {
    const Rows r{first_row, lesser(all_rows, first_row + kRowBlock)};
    if (seen(r.end - 1, j0, j1) == 0) continue;
    float* const block = scores + r.begin * kKeyBlock;
    product({queries + r.begin * w, w, 1}, keys, kKeyBlock, block, kKeyBlock, r.end - r.begin, false,
            [&](i64 i, i64 n) {
              return Need{ceil_div(seen(r.begin + i + n - 1, j0, j1), kLanes) * kLanes, 0, args.shape.d};
            });
    move_maxima(r, j0, j1, sums);
    exponentiate(r.end - r.begin, sums.top + r.begin, block, sums.weight + r.begin);
    add_values<T>(r, j0, j1, sums.values);
  }
}

template <typename T>
void Part::finish() const {
  const PagedShape& z = args.shape;
  const i64 w = width(), g = group();
  for (i64 r = 0; r < rows(); ++r) {
    const float divisor = all.weight[r] == 0 ? 1 : all.weight[r];
    T* o = static_cast<T*>(args.o) + element_of(r / g) + r % g * z.d;
    for (i64 c = 0; c < z.d; c += kLanes) put(o, c, z.d, get(all.values + r * w, c, z.d) / divisor);
  }
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
