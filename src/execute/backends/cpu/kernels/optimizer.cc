// adamw and sgd (formulas: describe/ops/adamw.cc, sgd.cc), in f32, rounded to each tensor's type when stored.
// If *apply is 0, parameter and state are unchanged, and the work is reported as skipped. Roofline: memory, adamw 28
// bytes per element in f32.

#include "execute/backends/cpu/kernels/optimizer.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kBlock = 16384;

void keep(const void* from, void* to, Elem elem, i64 n) {
  if (from != to) __builtin_memcpy(to, from, static_cast<std::size_t>(n * size_of(elem)));
}

template <typename P, typename G, typename S>
void adamw_block(const AdamwArgs& args, i64 begin, i64 end) {
  const i64 n = end - begin;
  const P* p = static_cast<const P*>(args.p) + begin;
  const G* g = static_cast<const G*>(args.g) + begin;
  const S *m = static_cast<const S*>(args.m) + begin, *v = static_cast<const S*>(args.v) + begin;
  P* p_out = static_cast<P*>(args.p_out) + begin;
  S *m_out = static_cast<S*>(args.m_out) + begin, *v_out = static_cast<S*>(args.v_out) + begin;
  const double count = static_cast<double>(*args.count);
  const auto unbias1 = static_cast<float>(1 - __builtin_pow(args.beta1, count)),
             unbias2 = static_cast<float>(1 - __builtin_pow(args.beta2, count));
  const auto beta1 = static_cast<float>(args.beta1), rest1 = static_cast<float>(1 - args.beta1);
  const auto beta2 = static_cast<float>(args.beta2), rest2 = static_cast<float>(1 - args.beta2);
  const auto eps = static_cast<float>(args.eps), decay = static_cast<float>(args.weight_decay);
  const float scale = *args.scale, rate = *args.rate;
  for (i64 i = 0; i < n; i += kLanes) {
    const F old = get(p, i, n), scaled = get(g, i, n) * scale;
    const F m_new = beta1 * get(m, i, n) + rest1 * scaled;
    const F v_new = beta2 * get(v, i, n) + rest2 * scaled * scaled;
    const F direction = m_new / unbias1 / (sqrt_f(v_new / unbias2) + eps) + decay * old;
    put(p_out, i, n, old - rate * direction);
    put(m_out, i, n, m_new);
    put(v_out, i, n, v_new);
  }
}

template <typename P, typename G, typename S>
void sgd_block(const SgdArgs& args, i64 begin, i64 end) {
  const i64 n = end - begin;
  const P* p = static_cast<const P*>(args.p) + begin;
  const G* g = static_cast<const G*>(args.g) + begin;
  P* p_out = static_cast<P*>(args.p_out) + begin;
  const auto momentum = static_cast<float>(args.momentum), decay = static_cast<float>(args.weight_decay);
  const float scale = *args.scale, rate = *args.rate;
  for (i64 i = 0; i < n; i += kLanes) {
    const F old = get(p, i, n);
    F step = get(g, i, n) * scale;
    if (decay != 0) step = step + decay * old;
    if (args.m != nullptr) {
      step = momentum * get(static_cast<const S*>(args.m) + begin, i, n) + step;
      put(static_cast<S*>(args.m_out) + begin, i, n, step);
    }
    put(p_out, i, n, old - rate * step);
  }
}

// Calls fn(P*, G*, S*) with the types of parameter, gradient and state.
template <typename Fn>
inline void visit_three(Elem p, Elem g, Elem s, const Fn& fn) {
  visit_float(p,
              [&](auto* tp) { visit_float(g, [&](auto* tg) { visit_float(s, [&](auto* ts) { fn(tp, tg, ts); }); }); });
}

}  // namespace

KernelReport adamw(const AdamwArgs& args) {
  const i64 n = args.n, moments = n * size_of(args.m_elem) + n * size_of(args.v_elem),
            p_bytes = n * size_of(args.p_elem);
  const i64 read = p_bytes + n * size_of(args.g_elem) + moments + 13, written = p_bytes + moments;
  const i64 flops = 16 * n + 2, transcendentals = n + 2;
  if (*args.apply == 0) {
    keep(args.p, args.p_out, args.p_elem, n);
    keep(args.m, args.m_out, args.m_elem, n);
    keep(args.v, args.v_out, args.v_elem, n);
    return {0, 0, flops, transcendentals, read, written};
  }
  visit_three(args.p_elem, args.g_elem, args.m_elem, [&](auto* p, auto* g, auto* s) {
    parallel_blocks(args.threads, n, kBlock, [&](i64 begin, i64 end) {
      adamw_block<typename Pointee<decltype(p)>::type, typename Pointee<decltype(g)>::type,
                  typename Pointee<decltype(s)>::type>(args, begin, end);
    });
  });
  return {flops, transcendentals, 0, 0, read, written};
}

KernelReport sgd(const SgdArgs& args) {
  const i64 n = args.n, p_bytes = n * size_of(args.p_elem), m_bytes = args.m == nullptr ? 0 : n * size_of(args.m_elem);
  const i64 read = p_bytes + n * size_of(args.g_elem) + m_bytes + 9, written = p_bytes + m_bytes;
  const i64 flops = n * (3 + (args.m != nullptr ? 2 : 0) + (args.weight_decay != 0 ? 2 : 0));
  if (*args.apply == 0) {
    keep(args.p, args.p_out, args.p_elem, n);
    if (args.m != nullptr) keep(args.m, args.m_out, args.m_elem, n);
    return {0, 0, flops, 0, read, written};
  }
  visit_three(args.p_elem, args.g_elem, args.m_elem, [&](auto* p, auto* g, auto* s) {
    parallel_blocks(args.threads, n, kBlock, [&](i64 begin, i64 end) {
      sgd_block<typename Pointee<decltype(p)>::type, typename Pointee<decltype(g)>::type,
                typename Pointee<decltype(s)>::type>(args, begin, end);
    });
  });
  return {flops, 0, 0, 0, read, written};
}

}  // namespace systole::cpu::SYSTOLE_ISA
