// Attention over pages. The rows of all heads that share a kv head are computed together, so that a key is loaded once
// for all of them. The keys are split into runs of 128 positions, which begin at position 0 for every query. Over a run
// the rows go in blocks of 64 positions:
//
//   S = (scale Q) Kᵀ      m' = max(m, rowmax S)      P = e^(S - m')      l' = l e^(m - m') + rowsum P
//   O' = O e^(m - m') + P V
//
// and the runs are merged in order of ascending keys, from m = -inf, l = 0, O = 0:
//
//   m' = max(m, mʳ)       l' = l e^(m - m') + lʳ e^(mʳ - m')      O' = O e^(m - m') + Oʳ e^(mʳ - m')
//
// At the end o = O / l. A sum is in order of ascending keys within a block, so the bits depend on the query and its
// keys alone. A block or run that a row does not see at all leaves the row as it is.
//
// With many rows a part is a kv head of one entry and some of its queries, and goes over all keys. With few, as one
// token per sequence has, threads share the runs of keys: each takes as many keys as the others, and who does the last
// run of a kv head merges them.
//
// Roofline: the rate of memory at which keys and values are read, while there are few rows; else as attention.cc.

#include "execute/backends/cpu/kernels/paged.h"

#include "execute/backends/cpu/kernels/attention_block.h"
#include "execute/backends/cpu/kernels/entry.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// Of some rows over some keys: sums of values [rows, w], maxima of scores and sums of weights [rows in whole vectors].
struct Sums {
  float *values, *top, *weight;
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

  template <typename Fn>
  void for_each_page(i64 j0, i64 j1, const Fn& fn) const;
  template <typename T>
  void pack_keys(i64 j0, i64 j1) const;
  template <typename T>
  void add_values(i64 j0, i64 j1, float* sums) const;
  void clear(const Sums& sums) const;
  void move_maxima(i64 j0, i64 j1, const Sums& sums) const;
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

// Adds the values of positions [j0, j1), weighted by the scores, to sums. Pages outside have zeros, which add nothing. Few
// rows take f32 values where they lie; for many it pays to pack them.
template <typename T>
void Part::add_values(i64 j0, i64 j1, float* sums) const {
  const PagedShape& z = args.shape;
  const i64 w = width(), row = z.n * z.d;
  const auto add = [&](i64 j, i64 number, const float* x, i64 x_row) {
    product({scores + (j - j0), kKeyBlock, 1}, x, x_row, sums, w, rows(), true, [&](i64, i64) {
      return Need{w, 0, number};
    });
  };
  const T* v = static_cast<const T*>(args.v);
  if constexpr (sizeof(T) == sizeof(float)) {
    if (z.d == w && rows() <= kFewPagedRows) {
      for_each_page(j0, j1, [&](i64 j, i64 number, i64 at) {
        if (at >= 0) add(j, number, v + at, row);
      });
      return;
    }
  }
  for_each_page(j0, j1, [&](i64 j, i64 number, i64 at) {
    float* to = values + (j - j0) * w;
    if (at >= 0) {
      widen_rows(v + at, row, number, z.d, w, 1.0f, to);
    } else {
      for (i64 i = 0; i < number * w; i += kLanes) store(to + i, F{});
    }
  });
  add(j0, j1 - j0, values, w);
}

void Part::clear(const Sums& sums) const {
  for (i64 i = 0; i < rows() * width(); i += kLanes) store(sums.values + i, F{});
  for (i64 r = 0; r < whole_rows(); ++r) {
    sums.top[r] = -kInf;
    sums.weight[r] = 0;
  }
}

// Masks the scores, updates their maxima, and rescales the sums to the new maxima.
void Part::move_maxima(i64 j0, i64 j1, const Sums& sums) const {
  const i64 g = group();
  for (i64 i = 0; i < count; ++i) {
    const i64 last = lesser(to(i), j1) - j0, start = greater(from(i), j0) - j0;
    for (i64 r = i * g; r < (i + 1) * g; ++r) {
      float* row = scores + r * kKeyBlock;
      F best = splat(-kInf);
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
      factor[r] = move_maximum(best, sums.top[r]);
    }
  }
  for (i64 r = rows(); r < whole_rows(); ++r) factor[r] = 0;
  rescale(rows(), width(), factor, sums.weight, sums.values);
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
  const i64 columns = ceil_div(j1 - j0, kLanes) * kLanes;
  pack_keys<T>(j0, j1);
  product({queries, width(), 1}, keys, kKeyBlock, scores, kKeyBlock, rows(), false, [&](i64, i64) {
    return Need{columns, 0, args.shape.d};
  });
  move_maxima(j0, j1, sums);
  exponentiate(rows(), sums.top, scores, sums.weight);
  add_values<T>(j0, j1, sums.values);
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

// fn(j0, j1) for each block of a run.
template <typename Fn>
void for_each_block(const Part& part, i64 run, const Fn& fn) {
  const i64 end = part.end_of(run);
  for (i64 j0 = part.begin_of(run); j0 < end; j0 += kKeyBlock) fn(j0, lesser(end, j0 + kKeyBlock));
}

// T: of queries and results; K: of keys and values.
template <typename T, typename K>
void attend_many(const PagedAttentionArgs& args) {
  const PagedShape& z = args.shape;
  const i64 each = paged_queries(z), chunks = ceil_div(z.t, each), heads = z.b * z.n;
  parallel(args.threads, heads * chunks, Schedule::cyclic, [&](i64 index, int thread) {
    const i64 first = index / heads * each;
    const Part part(args, index % heads / z.n, index % z.n, first, lesser(each, z.t - first), thread);
    part.template widen_queries<T>();
    part.clear(part.all);
    for (i64 run = part.first_run(); run < part.end_run(); ++run) {
      part.clear(part.of_run);
      for_each_block(part, run, [&](i64 j0, i64 j1) { part.template attend<K>(j0, j1, part.of_run); });
      part.merge(part.of_run);
    }
    part.template finish<T>();
  });
}

// Units are the runs of an entry for a kv head, in this order, with about as many keys as each costs.
struct Units {
  const PagedAttentionArgs& args;
  float* sums;         // [b, n, runs, paged_sums]
  std::int32_t* done;  // [b, n]: units whose sums are there

  explicit Units(const PagedAttentionArgs& given) : args(given) {
    const PagedShape& z = args.shape;
    sums = static_cast<float*>(args.workspace) + args.threads * paged_thread_workspace(z);
    done = reinterpret_cast<std::int32_t*>(sums + z.b * z.n * paged_runs(z) * paged_sums(z));
  }

  static i64 cost(const Part& part, i64 run) {
    constexpr i64 kOfUnit = 8;
    return greater(0, part.end_of(run) - part.begin_of(run)) + kOfUnit;
  }
  i64 total() const {
    i64 keys = 0;
    for (i64 b = 0; b < args.shape.b; ++b) {
      const Part part(args, b, 0, 0, args.shape.t, 0);
      for (i64 run = part.first_run(); run < part.end_run(); ++run) keys += args.shape.n * cost(part, run);
    }
    return keys;
  }
  Sums sums_of(const Part& part, i64 run) const {
    const PagedShape& z = args.shape;
    return part.sums_at(sums + ((part.b * z.n + part.kv) * paged_runs(z) + run) * paged_sums(z));
  }
  template <typename T, typename K>
  void compute(Part& part, i64 run, i64 kv0, i64 kv1) const;
};

// The units of kv heads [kv0, kv1), block by block: heads are neighbours in memory. The last unit of a head merges all.
template <typename T, typename K>
void Units::compute(Part& part, i64 run, i64 kv0, i64 kv1) const {
  for (part.kv = kv0; part.kv < kv1; ++part.kv) part.clear(sums_of(part, run));
  for_each_block(part, run, [&](i64 j0, i64 j1) {
    for (part.kv = kv0; part.kv < kv1; ++part.kv) {
      part.template widen_queries<T>();
      part.template attend<K>(j0, j1, sums_of(part, run));
    }
  });
  const i64 first = part.first_run(), end = part.end_run();
  for (part.kv = kv0; part.kv < kv1; ++part.kv) {
    if (__atomic_add_fetch(done + part.b * args.shape.n + part.kv, 1, __ATOMIC_ACQ_REL) < end - first) continue;
    part.clear(part.all);
    for (i64 i = first; i < end; ++i) part.merge(sums_of(part, i));
    part.template finish<T>();
  }
}

// Each thread takes the units whose middles lie in its share of all keys: the shares follow the number of threads, the
// bits do not.
template <typename T, typename K>
void attend_few(const PagedAttentionArgs& args) {
  const PagedShape& z = args.shape;
  const Units units(args);
  const i64 total = units.total();
  for (i64 head = 0; head < z.b * z.n; ++head) units.done[head] = 0;
  parallel(args.threads, args.threads, Schedule::contiguous, [&](i64 share, int thread) {
    i64 before = 0;
    for (i64 b = 0; b < z.b; ++b) {
      Part part(args, b, 0, 0, z.t, thread);
      for (i64 run = part.first_run(); run < part.end_run(); ++run) {
        const i64 keys = Units::cost(part, run);
        i64 kv0 = 0, kv1 = 0;
        for (i64 kv = 0; kv < z.n; ++kv, before += keys) {
          const i64 of = (before + keys / 2) * args.threads / total;
          kv0 += of < share;
          kv1 += of <= share;
        }
        if (kv0 < kv1) units.compute<T, K>(part, run, kv0, kv1);
      }
    }
  });
}

template <typename T, typename K>
void attend_all(const PagedAttentionArgs& args) {
  if (paged_few_rows(args.shape)) {
    attend_few<T, K>(args);
  } else {
    attend_many<T, K>(args);
  }
}

}  // namespace

KernelReport paged_attention(const PagedAttentionArgs& args) {
  const PagedShape& z = args.shape;
  const i64 queries = z.b * z.h * z.t, most = z.entries * z.size, elem = size_of(args.elem);
  const i64 bytes_read =
      (queries * elem + 2 * z.b * most * z.n * size_of(args.cache)) * z.d + z.b * (z.entries + 1) * 4;
  if (queries == 0) return {0, 0, 0, 0, bytes_read, 0};
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    if (args.cache == args.elem) {
      attend_all<T, T>(args);
    } else {
      attend_all<T, Bf16>(args);
    }
  });
  i64 pairs = 0;
  for (i64 b = 0; b < z.b; ++b) {
    const Part all(args, b, 0, 0, z.t, 0);
    for (i64 i = 0; i < z.t; ++i) pairs += z.h * greater(0, all.to(i) - all.from(i));
  }
  const i64 seen = z.window > 0 ? lesser(z.window, most) : most, skipped = queries * seen - pairs,
            of_pair = 4 * z.d + 3;
  return {pairs * of_pair + queries * z.d, pairs, skipped * of_pair, skipped, bytes_read, queries * z.d * elem};
}

}  // namespace systole::cpu::SYSTOLE_ISA
