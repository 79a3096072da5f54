// Attention over pages. A part is a kv head of one entry, and a run of queries of all heads that share it: their rows are
// computed together, so that a key is loaded once for all of them. The part goes over the keys in blocks of 64 positions,
// which begin at position 0 for every query, packs a block from its pages, and combines it with all rows:
//
//   S = (scale Q) Kᵀ      m' = max(m, rowmax S)      P = e^(S - m')      l' = l e^(m - m') + rowsum P
//   O' = O e^(m - m') + P V            at the end      o = O / l
//
// A sum is in order of ascending keys within a block, and blocks are ascending, so the bits depend on the query and its
// keys alone. A block that a row does not see at all leaves the row as it is.
//
// Roofline: the rate of memory at which keys and values are read, while a part has few rows; else as attention.cc.

#include "execute/backends/cpu/kernels/paged.h"

#include "execute/backends/cpu/kernels/attention_block.h"
#include "execute/backends/cpu/kernels/entry.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

struct Part {
  const PagedAttentionArgs& args;
  i64 b, kv, first, count;  // queries [first, first + count)
  float *keys, *values;     // [w, kKeyBlock], [kKeyBlock, w]
  float *scores, *queries, *sums, *top, *weight, *factor;

  Part(const PagedAttentionArgs& given, i64 entry, i64 kv_head, i64 begin, i64 number, int thread)
      : args(given), b(entry), kv(kv_head), first(begin), count(number) {
    const i64 w = width(), most = ceil_div(paged_queries(args.shape) * group(), 16) * 16;
    float* at = reinterpret_cast<float*>(static_cast<char*>(args.workspace) +
                                         thread * paged_attention_workspace(args.shape, 1));
    keys = at;
    values = keys + kKeyBlock * w;
    scores = values + kKeyBlock * w;
    queries = scores + most * kKeyBlock;
    sums = queries + most * w;
    top = sums + most * w;
    weight = top + most;
    factor = weight + most;
  }

  i64 group() const { return args.shape.h / args.shape.n; }
  i64 width() const { return padded_head(args.shape.d); }
  i64 rows() const { return count * group(); }
  // Row r is query first + r / group of head kv * group + r % group. Its positions are [from(r), to(r)).
  i64 place(i64 r) const { return first + r / group() + args.offset[b]; }
  i64 to(i64 r) const { return greater(0, lesser(place(r) + 1, args.shape.entries * args.shape.size)); }
  i64 from(i64 r) const { return args.shape.window > 0 ? greater(0, place(r) + 1 - args.shape.window) : 0; }

  template <typename T>
  void pack(i64 j0, i64 j1) const;
  void move_maxima(i64 j0, i64 j1) const;
  template <typename T>
  void run() const;
};

// Positions [j0, j1) of the pages: keys transposed, values as they are. Columns and rows past j1, and of pages outside,
// are 0.
template <typename T>
void Part::pack(i64 j0, i64 j1) const {
  const PagedShape& z = args.shape;
  const i64 w = width(), row = z.n * z.d;
  i64 entry = j0 / z.size, inside = j0 % z.size;
  for (i64 j = j0; j < j0 + kKeyBlock; j += kLanes) {
    i64 at[kLanes];  // of the position's row in the pool; -1 past j1 and in a page outside
    for (i64 i = 0; i < kLanes; ++i) {
      at[i] = -1;
      if (j + i >= j1) continue;
      const std::int32_t page = args.table[b * z.entries + entry];
      if (page >= 0 && page < z.pages) at[i] = (page * z.size + inside) * row + kv * z.d;
      if (++inside == z.size) {
        inside = 0;
        ++entry;
      }
    }
    const T *k = static_cast<const T*>(args.k), *v = static_cast<const T*>(args.v);
    for (i64 c = 0; c < w; c += kLanes) {
      F tile[kLanes];
      for (i64 i = 0; i < kLanes; ++i) tile[i] = c < z.d && at[i] >= 0 ? get(k + at[i], c, z.d) : F{};
      transpose(tile);
      for (i64 i = 0; i < kLanes; ++i) {
        store(keys + (c + i) * kKeyBlock + (j - j0), tile[i]);
        store(values + (j - j0 + i) * w + c, c < z.d && at[i] >= 0 ? get(v + at[i], c, z.d) : F{});
      }
    }
  }
}

// Masks the scores, updates their maxima, and rescales the sums to the new maxima.
void Part::move_maxima(i64 j0, i64 j1) const {
  for (i64 r = 0; r < rows(); ++r) {
    float* row = scores + r * kKeyBlock;
    const i64 end = lesser(to(r), j1) - j0, begin = greater(from(r), j0) - j0;
    F best = splat(-kInf);
    for (i64 c = 0; c < kKeyBlock; c += kLanes) {
      F v = load(row + c);
      if (begin > c || end < c + kLanes) {
        const auto low = static_cast<std::int32_t>(lesser(kLanes, greater(0, begin - c))),
                   high = static_cast<std::int32_t>(lesser(kLanes, greater(0, end - c)));
        v = blend((lane_numbers() >= (I{} + low)) & (lane_numbers() < (I{} + high)), v, splat(-kInf));
        store(row + c, v);
      }
      best = max_nan(best, v);
    }
    factor[r] = move_maximum(best, top[r]);
  }
  rescale(rows(), width(), factor, weight, sums);
}

template <typename T>
void Part::run() const {
  const PagedShape& z = args.shape;
  const i64 w = width(), g = group();
  for (i64 r = 0; r < rows(); ++r) {
    const T* q = static_cast<const T*>(args.q) + ((b * z.t + first + r / g) * z.h + kv * g + r % g) * z.d;
    widen_rows(q, z.d, 1, z.d, w, static_cast<float>(z.scale), queries + r * w);
  }
  for (i64 i = 0; i < rows() * w; i += kLanes) store(sums + i, F{});
  for (i64 r = 0; r < ceil_div(rows(), kLanes) * kLanes; ++r) {
    top[r] = -kInf;
    weight[r] = factor[r] = 0;
  }
  const i64 last = to(rows() - 1);
  const auto all = [](i64 n, i64 k) { return [n, k](i64, i64) { return Need{n, 0, k}; }; };
  for (i64 j0 = from(0) / kKeyBlock * kKeyBlock; j0 < last; j0 += kKeyBlock) {
    const i64 j1 = lesser(last, j0 + kKeyBlock);
    pack<T>(j0, j1);
    product({queries, w, 1}, keys, kKeyBlock, scores, kKeyBlock, rows(), false, all(kKeyBlock, z.d));
    move_maxima(j0, j1);
    exponentiate(rows(), top, scores, weight);
    product({scores, kKeyBlock, 1}, values, w, sums, w, rows(), true, all(w, j1 - j0));
  }
  for (i64 r = 0; r < rows(); ++r) {
    const float divisor = weight[r] == 0 ? 1 : weight[r];
    T* o = static_cast<T*>(args.o) + ((b * z.t + first + r / g) * z.h + kv * g + r % g) * z.d;
    for (i64 c = 0; c < z.d; c += kLanes) put(o, c, z.d, get(sums + r * w, c, z.d) / divisor);
  }
}

}  // namespace

KernelReport paged_attention(const PagedAttentionArgs& args) {
  const PagedShape& z = args.shape;
  const i64 queries = z.b * z.h * z.t, most = z.entries * z.size, elem = size_of(args.elem);
  const i64 bytes_read = (queries + 2 * z.b * most * z.n) * z.d * elem + z.b * (z.entries + 1) * 4;
  if (queries == 0) return {0, 0, 0, 0, bytes_read, 0};
  const i64 each = paged_queries(z), runs = ceil_div(z.t, each), heads = z.b * z.n;
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel(args.threads, heads * runs, Schedule::cyclic, [&](i64 part, int thread) {
      const i64 first = part / heads * each;
      Part(args, part % heads / z.n, part % z.n, first, lesser(each, z.t - first), thread).template run<T>();
    });
  });
  i64 pairs = 0;
  for (i64 b = 0; b < z.b; ++b) {
    const Part all(args, b, 0, 0, z.t, 0);
    for (i64 i = 0; i < z.t; ++i) pairs += z.h * greater(0, all.to(i * all.group()) - all.from(i * all.group()));
  }
  const i64 seen = z.window > 0 ? lesser(z.window, most) : most, skipped = queries * seen - pairs,
            of_pair = 4 * z.d + 3;
  return {pairs * of_pair + queries * z.d, pairs, skipped * of_pair, skipped, bytes_read, queries * z.d * elem};
}

KernelReport page_write(const PageWriteArgs& args) {
  const i64 bytes = args.inner * args.elem_size;
  if (args.pages_in != args.pages) {
    __builtin_memcpy(args.pages, args.pages_in, static_cast<std::size_t>(args.count * args.size * bytes));
  }
  parallel_blocks(args.threads, args.batch * args.t, rows_per_part(bytes), [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      const i64 b = i / args.t, at = args.position[b] + i % args.t;
      if (at < 0 || at >= args.entries * args.size) continue;
      const i64 page = args.table == nullptr ? b : args.table[b * args.entries + at / args.size];
      if (page < 0 || page >= args.count) continue;
      __builtin_memcpy(static_cast<char*>(args.pages) + (page * args.size + at % args.size) * bytes,
                       static_cast<const char*>(args.rows) + i * bytes, static_cast<std::size_t>(bytes));
    }
  });
  const i64 rows = args.batch * args.t * bytes, indices = args.batch * (args.table == nullptr ? 1 : args.entries + 1);
  return {0, 0, 0, 0, rows + indices * 4, rows};
}

}  // namespace systole::cpu::SYSTOLE_ISA
