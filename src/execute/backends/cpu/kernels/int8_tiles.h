#pragma once
// contract_int8 on AMX's tiles: C[16 n][16 rows] += A[16 n][64 k] B[64 k][16 rows]. A is loaded from w as it lies in
// memory; B are the rows of x, packed (int8_rows.h). Four tiles of C hide the loads. Intel, "Architecture Instruction
// Set Extensions Programming Reference", chapter 3 (AMX). For kernel sources only.
//
// The intrinsics do not tell the compiler which memory they read, hence the barriers.

#include "execute/backends/cpu/kernels/int8_rows.h"
#include "execute/backends/cpu/kernels/transpose.h"

#if defined(__AVX512F__)
namespace systole::cpu::SYSTOLE_ISA {
namespace {

#define SYSTOLE_AMX __attribute__((target("amx-tile,amx-int8")))

constexpr i64 kTile = 16, kTileBytes = 1024;

inline void memory_barrier() { asm volatile("" ::: "memory"); }

// Eight tiles of 16 rows of 64 bytes.
SYSTOLE_AMX inline void configure_tiles() {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  memory_barrier();
  asm volatile("ldtilecfg %0" ::"m"(config));
}

// Rows [0, rows) and bytes [0, bytes) of w, zeros behind them.
inline void copy_tile(const std::int8_t* w, i64 k, i64 rows, i64 bytes, std::int8_t* to) {
  const __mmask64 mask = bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
  for (i64 i = 0; i < kTile; ++i)
    _mm512_store_si512(to + i * 64, i < rows ? _mm512_maskz_loadu_epi8(mask, w + i * k) : _mm512_setzero_si512());
}

// A part of w, as a tile: in place, or copied if it is not whole.
struct WeightTile {
  const std::int8_t* data;
  i64 stride;
};
inline WeightTile weight_tile(const ContractInt8Args& args, i64 column, i64 i, std::int8_t* copy) {
  const std::int8_t* const w = args.w + column * args.k + i;
  if (column + kTile <= args.n && i + 64 <= args.k) return {w, args.k};
  copy_tile(w, args.k, args.n - column, args.k - i, copy);
  return {copy, 64};
}

// Sums [kN tiles of n][kM tiles of rows] of i32[16 n][16 rows], at `column` and `row`.
template <int kN, int kM>
SYSTOLE_AMX inline void tile_sums(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column,
                                  std::int32_t* sums) {
  alignas(64) std::int8_t copies[2 * kTileBytes];
  const std::int8_t* const b = x.q + row * x.width;
  const i64 next = kTile * x.width;  // the next 16 rows
  _tile_zero(0);
  if constexpr (kM > 1) _tile_zero(1);
  if constexpr (kN > 1) _tile_zero(2);
  if constexpr (kN > 1 && kM > 1) _tile_zero(3);
  for (i64 i = 0; i < args.k; i += 64) {
    const WeightTile a0 = weight_tile(args, column, i, copies);
    const WeightTile a1 = kN > 1 ? weight_tile(args, column + kTile, i, copies + kTileBytes) : a0;
    memory_barrier();
    _tile_loadd(4, a0.data, a0.stride);
    _tile_loadd(6, b + i * kTile, 64);
    _tile_dpbssd(0, 4, 6);
    if constexpr (kN > 1) {
      _tile_loadd(5, a1.data, a1.stride);
      _tile_dpbssd(2, 5, 6);
    }
    if constexpr (kM > 1) {
      _tile_loadd(7, b + next + i * kTile, 64);
      _tile_dpbssd(1, 4, 7);
      if constexpr (kN > 1) _tile_dpbssd(3, 5, 7);
    }
  }
  _tile_stored(0, sums, 64);
  if constexpr (kM > 1) _tile_stored(1, sums + 256, 64);
  if constexpr (kN > 1) _tile_stored(2, sums + 256 * kM, 64);
  if constexpr (kN > 1 && kM > 1) _tile_stored(3, sums + 768, 64);
  memory_barrier();
}

// Scales a tile of sums into y.
inline void give_tile(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column, const std::int32_t* sums) {
  F tile[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    I number;
    __builtin_memcpy(&number, sums + i * 16, sizeof number);
    tile[i] = to_float(number);
  }
  transpose(tile);
  const F scale = get(args.scale + column, 0, args.n - column);
  const i64 rows = lesser(kTile, args.rows - row);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i < rows)
      put(args.y + (row + i) * args.n + column, 0, args.n - column, splat(x.scale[row + i]) * scale * tile[i]);
  }
}

template <int kN, int kM>
SYSTOLE_AMX inline void tile_block(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column) {
  alignas(64) std::int32_t sums[kN * kM * 256];
  tile_sums<kN, kM>(args, x, row, column, sums);
  for (int n = 0; n < kN; ++n) {
    for (int m = 0; m < kM; ++m) give_tile(args, x, row + m * kTile, column + n * kTile, sums + (n * kM + m) * 256);
  }
}

// 32 columns by rows [first, last).
SYSTOLE_AMX inline void tile_columns(const ContractInt8Args& args, const Int8Rows& x, i64 first, i64 last, i64 column) {
  configure_tiles();
  const bool wide = column + kTile < args.n;
  for (i64 row = first; row < last; row += 2 * kTile) {
    const bool tall = row + kTile < last;
    if (wide && tall) tile_block<2, 2>(args, x, row, column);
    if (wide && !tall) tile_block<2, 1>(args, x, row, column);
    if (!wide && tall) tile_block<1, 2>(args, x, row, column);
    if (!wide && !tall) tile_block<1, 1>(args, x, row, column);
  }
  _tile_release();
}

// Packs 16 rows from `first` on for tiles.
inline void pack_rows(const ContractInt8Args& args, const Int8Rows& x, i64 first) {
  std::int8_t* const q = x.q + first * x.width;
  for (i64 m = 0; m < kTile; ++m) {
    const i64 row = first + m;
    const float* const from = args.x + row * args.k;
    const RowScale scale = row < args.rows ? scale_of(from, args.k) : RowScale{0, 0};
    x.scale[row] = scale.scale;
    const auto take = [&](i64 i, const std::int8_t* chunk) {
      for (i64 p = 0; p < 16; ++p) __builtin_memcpy(q + i * kTile + (p * 16 + m) * 4, chunk + p * 4, 4);
    };
    if (row < args.rows) {
      quantize(from, args.k, scale.inverse, take);
    } else {
      alignas(64) constexpr std::int8_t kZeros[64] = {};
      for (i64 i = 0; i < args.k; i += 64) take(i, kZeros);
    }
  }
}

// Rows of x that pass over w together: as many as stay in a second-level cache of 1 MiB or more, with 32 rows of w.
inline i64 rows_together(i64 width) { return greater(1, lesser(8, 768 * 1024 / (32 * greater(64, width)))) * 32; }

inline void contract_by_tiles(const ContractInt8Args& args, const Int8Rows& x) {
  parallel(args.threads, ceil_div(args.rows, kTile), Schedule::contiguous,
           [&](i64 part, int) { pack_rows(args, x, part * kTile); });
  const i64 columns = ceil_div(args.n, 2 * kTile), together = rows_together(x.width),
            groups = ceil_div(args.rows, together);
  parallel(args.threads, columns * groups, Schedule::contiguous, [&](i64 part, int) {
    const i64 first = part / columns * together;
    tile_columns(args, x, first, lesser(args.rows, first + together), part % columns * 2 * kTile);
  });
}

#undef SYSTOLE_AMX

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
#endif
