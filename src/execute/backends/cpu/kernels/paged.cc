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

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/paged_part.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

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
