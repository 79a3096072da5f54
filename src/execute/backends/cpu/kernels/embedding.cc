// embedding copies rows. embedding_grad clears the table; then each part owns a stripe of columns and adds the rows in
// order of the ids, so that a sum has one order for any number of threads. Roofline: memory; the gradient writes the
// whole table.

#include "execute/backends/cpu/kernels/embedding.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kStripe = 64;  // columns: 256 bytes of f32

template <typename T>
void add_stripe(const EmbeddingGradArgs& args, i64 column, i64 width) {
  for (i64 i = 0; i < args.num_ids; ++i) {
    const i64 id = args.ids[i];
    if (id < 0 || id >= args.vocab) continue;
    float* row = args.table + id * args.width + column;
    const T* g = static_cast<const T*>(args.g) + i * args.width + column;
    for (i64 c = 0; c < width; c += kLanes) put(row, c, width, get(row, c, width) + get(g, c, width));
  }
}

}  // namespace

KernelReport embedding(const EmbeddingArgs& args) {
  const i64 bytes = args.width * size_of(args.elem);
  parallel_blocks(args.threads, args.num_ids, rows_per_part(bytes), [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      char* y = static_cast<char*>(args.y) + i * bytes;
      const i64 id = args.ids[i];
      if (id >= 0 && id < args.vocab) {
        __builtin_memcpy(y, static_cast<const char*>(args.table) + id * bytes, static_cast<std::size_t>(bytes));
      } else {
        __builtin_memset(y, 0, static_cast<std::size_t>(bytes));
      }
    }
  });
  const i64 result = args.num_ids * bytes;
  return {0, 0, 0, 0, args.num_ids * 4 + lesser(args.vocab * bytes, result), result};
}

KernelReport embedding_grad(const EmbeddingGradArgs& args) {
  const i64 n = args.vocab * args.width;
  parallel_blocks(args.threads, n, 65536, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) args.table[i] = 0;
  });
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel_blocks(args.threads, args.width, kStripe, [&](i64 begin, i64 end) {
      for (i64 column = begin; column < end; column += kStripe)
        add_stripe<T>(args, column, lesser(kStripe, end - column));
    });
  });
  i64 outside = 0;
  for (i64 i = 0; i < args.num_ids; ++i) outside += args.ids[i] < 0 || args.ids[i] >= args.vocab ? 1 : 0;
  return {(args.num_ids - outside) * args.width,
          0,
          outside * args.width,
          0,
          args.num_ids * (4 + args.width * size_of(args.elem)),
          n * 4};
}

}  // namespace systole::cpu::SYSTOLE_ISA
