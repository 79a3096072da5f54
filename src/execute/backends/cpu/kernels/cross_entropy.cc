// cross_entropy and its gradient over rows of logits. The softmax is not stored: the gradient recomputes it from the
// logits and their lse, in place. Roofline: memory (bf16 rows are read twice in forward, the second time from cache) or
// one exponential per element.

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

template <typename T>
void forward_row(const CrossEntropyArgs& args, i64 row) {
  const i64 n = args.n;
  const T* x = static_cast<const T*>(args.logits) + row * n;
  const float top = row_max(x, n), shift = top == -kInf ? 0 : top;
  const T lowest = of_f32<T>(-kInf);
  const float sum = row_sum(n, [&](i64 i) { return within(exp_f(get(x, i, n, lowest) - shift), i, n); });
  float lanes[kLanes];
  store(lanes, log_f(splat(sum)));
  const float lse = shift + lanes[0];
  const i64 label = args.labels[row];
  const float picked = label >= 0 && label < n ? to_f32(x[label]) : 0;
  args.loss[row] = label < 0 ? 0 : picked == -kInf ? kInf : lse - picked;
  args.lse[row] = lse;
}

template <typename T>
void backward_row(const CrossEntropyGradArgs& args, i64 row) {
  const i64 n = args.n, label = args.labels[row];
  const T* x = static_cast<const T*>(args.logits) + row * n;
  T* dx = static_cast<T*>(args.dlogits) + row * n;
  if (label < 0) {
    for (i64 i = 0; i < n; ++i) dx[i] = T{};
    return;
  }
  const float lse = args.lse[row], g = args.g[row];
  const bool nothing = lse == -kInf;  // all logits are -inf: probabilities of 0
  const float at_label = label < n ? to_f32(x[label]) : 0;
  for (i64 i = 0; i < n; i += kLanes) {
    const F p = nothing ? splat(0) : exp_f(get(x, i, n) - lse);
    put(dx, i, n, p * g);
  }
  if (label < n) {
    float lanes[kLanes];
    store(lanes, nothing ? splat(0) : exp_f(splat(at_label - lse)));
    set_f32(dx + label, (lanes[0] - 1) * g);
  }
}

}  // namespace

KernelReport cross_entropy(const CrossEntropyArgs& args) {
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel_blocks(args.threads, args.rows, rows_per_part(args.n * 4), [&](i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) forward_row<T>(args, row);
    });
  });
  const i64 elements = args.rows * args.n;
  return {2 * elements + 2 * args.rows,
          elements + args.rows,
          0,
          0,
          elements * size_of(args.elem) + args.rows * 4,
          args.rows * 8};
}

KernelReport cross_entropy_grad(const CrossEntropyGradArgs& args) {
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel_blocks(args.threads, args.rows, rows_per_part(args.n * 4), [&](i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) backward_row<T>(args, row);
    });
  });
  i64 ignored = 0;
  for (i64 row = 0; row < args.rows; ++row) ignored += args.labels[row] < 0 ? 1 : 0;
  const i64 elements = args.rows * args.n, done = (args.rows - ignored) * args.n, bytes = elements * size_of(args.elem);
  return {3 * done, done, 3 * (elements - done), elements - done, bytes + args.rows * 12, bytes};
}

}  // namespace systole::cpu::SYSTOLE_ISA
