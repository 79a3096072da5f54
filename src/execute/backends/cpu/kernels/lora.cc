// lora_rows: a part is a few rows. A row's sums are in an order that depends on its sizes alone: over `in` by vectors,
// over the rank ascending. Roofline: memory, for the adapters of the rows' entries; they stay in the cache from row to
// row.

#include "execute/backends/cpu/kernels/lora.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kRows = 4;  // of a part

void adapt_row(const LoraRowsArgs& args, i64 adapter, const float* x, const float* y, float* z) {
  const float* a = args.a + adapter * args.rank * args.in;
  const float* b = args.b + adapter * args.rank * args.out;
  float low[kMostAdapterRank] = {};
  for (i64 r = 0; r < args.rank; ++r) {
    const float* row = a + r * args.in;
    low[r] = row_sum(args.in, [&](i64 i) { return get(x, i, args.in) * get(row, i, args.in); });
  }
  for (i64 o = 0; o < args.out; o += kLanes) {
    F sum = get(y, o, args.out);
    for (i64 r = 0; r < args.rank; ++r) sum += splat(low[r]) * get(b + r * args.out, o, args.out);
    put(z, o, args.out, sum);
  }
}

}  // namespace

KernelReport lora_rows(const LoraRowsArgs& args) {
  const i64 row_flops = 2 * args.rank * (args.in + args.out), rows = args.entries * args.rows;
  i64 adapted = 0;  // entries
  for (i64 e = 0; e < args.entries; ++e) adapted += args.which[e] >= 1 && args.which[e] <= args.adapters ? 1 : 0;
  // In place and without an adapter there is nothing to do, and no reason to wake threads.
  const i64 visited = adapted > 0 || args.z != args.y ? rows : 0;
  parallel_blocks(args.threads, visited, kRows, [&](i64 begin, i64 end) {
    for (i64 n = begin; n < end; ++n) {
      const i64 adapter = i64{args.which[n / args.rows]} - 1;
      const float* y = args.y + n * args.out;
      float* z = args.z + n * args.out;
      if (adapter >= 0 && adapter < args.adapters) {
        adapt_row(args, adapter, args.x + n * args.in, y, z);
      } else if (z != y) {
        __builtin_memcpy(z, y, static_cast<std::size_t>(args.out) * sizeof(float));
      }
    }
  });
  const i64 numbers = rows * (args.in + args.out) + args.adapters * args.rank * (args.in + args.out) + args.entries;
  return {adapted * args.rows * row_flops,
          0,
          (args.entries - adapted) * args.rows * row_flops,
          0,
          numbers * 4,
          rows * args.out * 4};
}

}  // namespace systole::cpu::SYSTOLE_ISA
