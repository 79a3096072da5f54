#pragma once
// adamw and sgd: one pass over parameter, gradient and state, in place or not. If *apply is 0, nothing changes.

#include "execute/backends/cpu/kernels/elem.h"

namespace systole::cpu {

struct AdamwArgs {
  const void *p, *g, *m, *v;
  void *p_out, *m_out, *v_out;          // each may be its input
  Elem p_elem, g_elem, m_elem, v_elem;  // m and v of one type
  std::int64_t n;
  const float *scale, *rate;  // scalars, read when the kernel runs
  const std::int32_t* count;  // number of updates applied, including this one
  const std::uint8_t* apply;
  double beta1, beta2, eps, weight_decay;
  int threads;
};

struct SgdArgs {
  const void *p, *g, *m;  // m null: no momentum
  void *p_out, *m_out;
  Elem p_elem, g_elem, m_elem;
  std::int64_t n;
  const float *scale, *rate;
  const std::uint8_t* apply;
  double momentum, weight_decay;
  int threads;
};

}  // namespace systole::cpu
