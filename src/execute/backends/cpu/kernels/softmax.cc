// softmax of rows: the maximum, the exponentials with their sum, the division. Roofline: memory, twice over a row that
// fits the cache; 1 exponential per element. A row of only -inf gives zeros; +inf or NaN gives a row of NaN.

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

template <typename T>
void softmax_row(const T* x, float* e, T* y, i64 n) {
  const float top = row_max(x, n), shift = top == -kInf ? 0 : top;
  const T lowest = of_f32<T>(-kInf);
  const float sum = row_sum(n, [&](i64 i) {
    const F v = within(exp_f(get(x, i, n, lowest) - shift), i, n);
    put(e, i, n, v);
    return v;
  });
  const float divisor = sum == 0 ? 1 : sum;
  for (i64 i = 0; i < n; i += kLanes) put(y, i, n, get(e, i, n) / divisor);
}

}  // namespace

KernelReport softmax(const SoftmaxArgs& args) {
  const i64 n = args.n, scratch = softmax_workspace(Elem::bf16, n, 1) / 4;
  const i64 block = rows_per_part(n * 4);
  parallel(args.threads, ceil_div(args.rows, block), Schedule::contiguous, [&](i64 part, int thread) {
    for (i64 row = part * block; row < lesser(args.rows, (part + 1) * block); ++row) {
      if (args.elem == Elem::f32) {
        float* y = static_cast<float*>(args.y) + row * n;
        softmax_row(static_cast<const float*>(args.x) + row * n, y, y, n);
      } else {
        softmax_row(static_cast<const Bf16*>(args.x) + row * n, static_cast<float*>(args.workspace) + thread * scratch,
                    static_cast<Bf16*>(args.y) + row * n, n);
      }
    }
  });
  const i64 elements = args.rows * n, bytes = elements * size_of(args.elem);
  return {3 * elements, elements, 0, 0, bytes, bytes};
}

}  // namespace systole::cpu::SYSTOLE_ISA
