// gemm, after Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008). B is packed in panels
// of kGemmColumns columns and at most kGemmSteps of k, A in blocks of kGemmRows rows, each in slivers as wide as a tile
// of C. A tile's kTileM × 2 vectors stay in registers during the loop over k (2 loads, kTileM broadcasts and 2 kTileM
// fused multiply-adds per step). Packing converts bf16 to f32, and transposes in registers if k is the contiguous dim.
//
// Roofline: the f32 multiply-add rate. An element of A is packed once per panel and used for kGemmColumns columns.
//
// With few rows the rate of memory at which B is read is the bound, and packing would double it. So few rows are
// computed from B as it lies (kFewRows, FewRows below), with each sum in the same order: an element of C has the same
// bits whatever m is.

#include "execute/backends/cpu/kernels/gemm.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/transpose.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr int kTileM = kLanes == 16 ? 14 : 6, kTileN = 2 * kLanes;
static_assert(kGemmRows % kTileM == 0 && 32 % kTileN == 0);

// Packs a sliver of kWidth rows of x, of which `rows` remain, as f32 y[k][kWidth]; further rows are 0. May write up to
// a vector past its end.
template <int kWidth, typename T>
inline void pack_sliver(const T* x, i64 row, i64 step, i64 rows, i64 k, float* y) {
  if (step == 1) {
    for (i64 p = 0; p < k; p += kLanes) {
      const i64 steps = lesser(kLanes, k - p);
#pragma GCC unroll 2
      for (int w = 0; w < kWidth; w += kLanes) {
        F tile[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) tile[i] = w + i < kWidth && w + i < rows ? get(x + (w + i) * row, p, k) : F{};
        transpose(tile);
        for (i64 i = 0; i < steps; ++i) store(y + (p + i) * kWidth + w, tile[i]);
      }
    }
  } else if (row == 1) {
    for (i64 p = 0; p < k; ++p) {
#pragma GCC unroll 2
      for (int w = 0; w < kWidth; w += kLanes) store(y + p * kWidth + w, w < rows ? get(x + p * step, w, rows) : F{});
    }
  } else {
    for (i64 p = 0; p < k; ++p) {
      for (int w = 0; w < kWidth; ++w) y[p * kWidth + w] = w < rows ? to_f32(x[w * row + p * step]) : 0.0f;
    }
  }
}

// Computes a tile of C: previous sums (null: none) plus the product of A's and B's slivers, into `c`.
template <typename T>
inline void tile(i64 k, const float* a, const float* b, const float* sums, i64 sums_row, T* c, i64 c_row) {
  F sum[kTileM][2];
#pragma GCC unroll 16
  for (int i = 0; i < kTileM; ++i) sum[i][0] = sum[i][1] = F{};
  for (i64 p = 0; p < k; ++p) {
    const F left = load(b + p * kTileN), right = load(b + p * kTileN + kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kTileM; ++i) {
      const F value = splat(a[p * kTileM + i]);
      sum[i][0] += value * left;
      sum[i][1] += value * right;
    }
  }
  if (sums != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kTileM; ++i) {
      sum[i][0] += load(sums + i * sums_row);
      sum[i][1] += load(sums + i * sums_row + kLanes);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTileM; ++i) {
    store(c + i * c_row, sum[i][0]);
    store(c + i * c_row + kLanes, sum[i][1]);
  }
}

// The same for a partial tile of `rows` × `columns` at an edge of C.
template <typename T>
void edge_tile(i64 k, const float* a, const float* b, const float* sums, i64 sums_row, T* c, i64 c_row, i64 rows,
               i64 columns) {
  float whole[kTileM * kTileN];
  if (sums != nullptr) {
    float so_far[kTileM * kTileN] = {};
    for (i64 i = 0; i < rows; ++i) {
      for (i64 j = 0; j < columns; ++j) so_far[i * kTileN + j] = sums[i * sums_row + j];
    }
    tile(k, a, b, so_far, kTileN, whole, kTileN);
  } else {
    tile(k, a, b, nullptr, 0, whole, kTileN);
  }
  for (i64 i = 0; i < rows; ++i) {
    for (i64 j = 0; j < columns; ++j) set_f32(c + i * c_row + j, whole[i * kTileN + j]);
  }
}

// Where a range of k reads the sums of earlier ranges and writes its own.
template <typename T>
struct Place {
  const float* sums;  // of the panel's first column; null in the first range
  i64 sums_row;
  T* c;
  i64 c_row;
};

template <typename In>
struct Panel {
  const GemmArgs& args;
  float* b;  // packed
  i64 column, columns, step, steps;

  void pack() const {
    const auto* from = static_cast<const In*>(args.b.data) + step * args.b.step;
    parallel(args.threads, ceil_div(columns, kTileN), Schedule::contiguous, [&](i64 s, int) {
      const i64 j = s * kTileN;
      pack_sliver<kTileN>(from + (column + j) * args.b.row, args.b.row, args.b.step, columns - j, steps, b + j * steps);
    });
  }

  // Splits the rows into `cuts` and the columns into `sides`: a part for every thread, blocks of A within kGemmRows.
  template <typename T>
  void multiply(float* blocks, const Place<T>& place) const {
    const i64 slivers = ceil_div(args.m, kTileM), most = kGemmRows / kTileM;
    const i64 cuts = lesser(slivers, ceil_div(ceil_div(slivers, most), args.threads) * args.threads);
    const i64 tiles = ceil_div(columns, kTileN), sides = lesser(tiles, ceil_div(args.threads, cuts));
    parallel(args.threads, cuts * sides, Schedule::contiguous, [&](i64 part, int thread) {
      const i64 cut = part / sides, side = part % sides;
      run(blocks + thread * (kGemmRows * gemm_steps(args.k) + 16), slivers * cut / cuts, slivers * (cut + 1) / cuts,
          tiles * side / sides, tiles * (side + 1) / sides, place);
    });
  }

  template <typename T>
  void run(float* a, i64 first, i64 last, i64 left, i64 right, const Place<T>& place) const {
    const auto* from = static_cast<const In*>(args.a.data) + step * args.a.step;
    for (i64 s = first; s < last; ++s) {
      pack_sliver<kTileM>(from + s * kTileM * args.a.row, args.a.row, args.a.step, args.m - s * kTileM, steps,
                          a + (s - first) * kTileM * steps);
    }
    for (i64 t = left; t < right; ++t) {
      const i64 j = t * kTileN, width = lesser(kTileN, columns - j);
      for (i64 s = first; s < last; ++s) {
        const i64 i = s * kTileM, height = lesser(kTileM, args.m - i);
        const float *sliver = a + (s - first) * kTileM * steps,
                    *sums = place.sums == nullptr ? nullptr : place.sums + i * place.sums_row + j;
        T* c = place.c + i * place.c_row + j;
        if (height == kTileM && width == kTileN) {
          tile(steps, sliver, b + j * steps, sums, place.sums_row, c, place.c_row);
        } else {
          edge_tile(steps, sliver, b + j * steps, sums, place.sums_row, c, place.c_row, height, width);
        }
      }
    }
  }
};

template <typename In, typename Out>
void product(const GemmArgs& args) {
  const i64 steps = gemm_steps(args.k), width = gemm_columns(args.n);
  auto* const b = static_cast<float*>(args.workspace);
  float* const sums = b + width * steps;
  float* const blocks = sums + (gemm_keeps_sums(args.k, args.out) ? args.m * width : 0);
  for (i64 column = 0; column < args.n; column += width) {
    Out* const c = static_cast<Out*>(args.c) + column;
    for (i64 step = 0; step < args.k; step += steps) {
      const Panel<In> panel{args, b, column, lesser(width, args.n - column), step, lesser(steps, args.k - step)};
      panel.pack();
      const bool first = step == 0, last = step + steps >= args.k;
      if constexpr (sizeof(Out) == 4) {
        panel.multiply(blocks, Place<float>{first ? nullptr : c, args.c_row, c, args.c_row});
      } else if (last) {
        panel.multiply(blocks, Place<Out>{first ? nullptr : sums, width, c, args.c_row});
      } else {
        panel.multiply(blocks, Place<float>{first ? nullptr : sums, width, sums, width});
      }
    }
  }
}

// Products of up to kFewRows rows. A part is a strip of columns, over all of k; within a range of k it takes the rows in
// groups, for which B's strip comes from the cache after the first.
constexpr i64 kFewRows = 32, kGroup = 8;
constexpr i64 kStrip = 8 * kLanes;  // columns; a multiple of every group's

// Where B's rows lie one behind the other, a strip is computed in blocks of so many steps of k, while the next block is
// fetched: in whole rows of the strip, because memory gives neighbouring lines faster than lines that are far apart.
constexpr i64 kBlock = 64;
constexpr i64 kAhead = 8;  // steps of k between a prefetch and its use, where a strip of all steps is one pass

// With fewer columns than these a strip is one pass over all of k, for so many rows of C: B's rows are short, and a
// block's start and end cost more than lines that lie apart. Measured on a Zen 5 (November 2026).
template <typename In>
constexpr i64 narrow_columns(i64 rows) {
  return rows >= 4 ? 2048 : sizeof(In) == 4 ? 1024 : 0;
}

// The vectors of columns that a group of rows has in registers.
constexpr int vectors_of(int rows) {
  const int vectors = (kLanes == 16 ? 16 : 8) / rows;
  return vectors < 8 ? vectors : 8;
}

template <typename In>
struct FewRows {
  const GemmArgs& args;

  const In* a(i64 row, i64 step) const {
    return static_cast<const In*>(args.a.data) + row * args.a.row + step * args.a.step;
  }
  const In* b(i64 column, i64 step) const {
    return static_cast<const In*>(args.b.data) + column * args.b.row + step * args.b.step;
  }

  // sums[kRows][kStrip] += Σ over steps [begin, end), for columns from `column` on, `width` of which are there; with
  // `fresh`, sums begin at 0. `next`: the next block's strip, of which this is pass number `pass`; null: none.
  // `ahead`: fetches what this pass or the next one reads a little later.
  template <int kRows>
  [[gnu::noinline]] void pass(i64 row, i64 column, i64 width, i64 begin, i64 end, float* sums, bool fresh,
                              const In* next, i64 pass, bool ahead) const {
    constexpr int kVectors = vectors_of(kRows);
    constexpr i64 kColumns = kVectors * kLanes, kPasses = kStrip / kColumns, kLine = 64 / sizeof(In);
    F sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[i][j] = fresh ? F{} : load(sums + i * kStrip + j * kLanes);
    }
    for (i64 p = begin; p < end; ++p) {
      const In* from = b(column, p);
      if (ahead) {
        const In* line = from + (kVectors < 8 ? kColumns : kAhead * args.b.step);
#pragma GCC unroll 8
        for (i64 j = 0; j < kColumns; j += kLine) __builtin_prefetch(line + j);
      } else if (next != nullptr) {
        const i64 part = pass * kBlock + p - begin;  // kPasses parts are a row
        const In* line = next + part / kPasses * args.b.step + part % kPasses * kColumns;
#pragma GCC unroll 8
        for (i64 j = 0; j < kColumns; j += kLine) __builtin_prefetch(line + j, 0, 2);
      }
      F values[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) values[j] = j * kLanes < width ? get(from, j * kLanes, width) : F{};
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const F value = splat(to_f32(*a(row + i, p)));
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) sum[i][j] += value * values[j];
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) store(sums + i * kStrip + j * kLanes, sum[i][j]);
    }
  }

  // All passes of a group over a block.
  template <int kRows>
  void block(i64 row, i64 column, i64 width, i64 begin, i64 end, float* sums, bool fresh, const In* next,
             bool narrow) const {
    constexpr i64 kColumns = vectors_of(kRows) * kLanes;
    for (i64 at = 0; at < width; at += kColumns)
      pass<kRows>(row, column + at, lesser(kColumns, width - at), begin, end, sums + row * kStrip + at, fresh,
                  row == 0 ? next : nullptr, at / kColumns, narrow && row == 0);
  }

  template <typename Out>
  void strip(i64 column, i64 width) const {
    alignas(64) float part[kFewRows * kStrip], total[kFewRows * kStrip];  // of a range of k, and of those before it
    const i64 stretch = gemm_steps(args.k);
    const bool narrow = args.b.step < narrow_columns<In>(args.m);
    const i64 steps = narrow ? stretch : kBlock;
    for (i64 step = 0; step < args.k; step += stretch) {
      const i64 behind = lesser(step + stretch, args.k);
      for (i64 begin = step; begin < behind; begin += steps) {
        const i64 end = lesser(begin + steps, behind);
        const In* const next = narrow                     ? nullptr
                               : end < args.k             ? b(column, end)
                               : column + kStrip < args.n ? b(column + kStrip, 0)
                                                          : nullptr;
        const bool fresh = begin == step;
        i64 row = 0;
        for (; row + kGroup <= args.m; row += kGroup)
          block<kGroup>(row, column, width, begin, end, part, fresh, next, narrow);
        for (; row + 4 <= args.m; row += 4) block<4>(row, column, width, begin, end, part, fresh, next, narrow);
        for (; row + 2 <= args.m; row += 2) block<2>(row, column, width, begin, end, part, fresh, next, narrow);
        if (row < args.m) block<1>(row, column, width, begin, end, part, fresh, next, narrow);
      }
      for (i64 i = 0; i < args.m; ++i) {
        for (i64 j = 0; j < width; j += kLanes) {
          const F sum = load(part + i * kStrip + j);
          const F all = step == 0 ? sum : sum + load(total + i * kStrip + j);
          if (behind < args.k) {
            store(total + i * kStrip + j, all);
          } else {
            put(static_cast<Out*>(args.c) + i * args.c_row + column, j, width, all);
          }
        }
      }
    }
  }

  // Where the steps of k lie one behind the other: transposed in registers.
  template <int kRows, int kVectors>
  [[gnu::noinline]] void add(i64 row, i64 column, i64 width, i64 begin, i64 end, F (&sums)[kRows][kVectors]) const {
    F sum[kRows][kVectors] = {};
    for (i64 p = begin; p < end; p += kLanes) {
      const i64 steps = lesser(kLanes, end - p);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        F tile[kLanes];
#pragma GCC unroll 16
        for (int c = 0; c < kLanes; ++c)
          tile[c] = j * kLanes + c < width ? get(b(column + j * kLanes + c, p), 0, steps) : F{};
        transpose(tile);
        for (i64 q = 0; q < steps; ++q) {
#pragma GCC unroll 8
          for (int i = 0; i < kRows; ++i) sum[i][j] += splat(to_f32(*a(row + i, p + q))) * tile[q];
        }
      }
    }
    const bool first = begin == 0;
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[i][j] = first ? sum[i][j] : sum[i][j] + sums[i][j];
    }
  }

  template <int kRows, typename Out>
  void group(i64 row, i64 column, i64 width) const {
    constexpr int kVectors = vectors_of(kRows);
    const i64 stretch = gemm_steps(args.k);
    for (i64 at = 0; at < width; at += kVectors * kLanes) {
      const i64 here = lesser(kVectors * kLanes, width - at);
      F sums[kRows][kVectors] = {};
      for (i64 step = 0; step < args.k; step += stretch)
        add<kRows, kVectors>(row, column + at, here, step, lesser(step + stretch, args.k), sums);
      for (int i = 0; i < kRows; ++i) {
        Out* c = static_cast<Out*>(args.c) + (row + i) * args.c_row + column + at;
        for (int j = 0; j < kVectors && j * kLanes < here; ++j) put(c, j * kLanes, here, sums[i][j]);
      }
    }
  }

  template <typename Out>
  void run() const {
    parallel(args.threads, ceil_div(args.n, kStrip), Schedule::contiguous, [&](i64 number, int) {
      const i64 column = number * kStrip, width = lesser(kStrip, args.n - column);
      if (args.b.row == 1) return strip<Out>(column, width);
      i64 row = 0;
      for (; row + kGroup <= args.m; row += kGroup) group<kGroup, Out>(row, column, width);
      for (; row + 4 <= args.m; row += 4) group<4, Out>(row, column, width);
      for (; row + 2 <= args.m; row += 2) group<2, Out>(row, column, width);
      if (row < args.m) group<1, Out>(row, column, width);
    });
  }
};

bool few(const GemmArgs& args) { return args.m <= kFewRows && (args.b.row == 1 || args.b.step == 1); }

}  // namespace

KernelReport gemm(const GemmArgs& args) {
  visit_float(args.in, [&](auto* in) {
    visit_float(args.out, [&](auto* out) {
      using In = typename Pointee<decltype(in)>::type;
      using Out = typename Pointee<decltype(out)>::type;
      if (few(args)) {
        FewRows<In>{args}.template run<Out>();
      } else {
        product<In, Out>(args);
      }
    });
  });
  const i64 in = size_of(args.in);
  return {2 * args.m * args.n * args.k, 0, 0, 0, (args.m + args.n) * args.k * in, args.m * args.n * size_of(args.out)};
}

}  // namespace systole::cpu::SYSTOLE_ISA
