#pragma once
// The cpu's kernels: pure functions of pointers and sizes that allocate nothing, fail never, and give the same bits for
// any number of threads and at every call. Each source is compiled once per instruction set, in a namespace of its own
// (SYSTOLE_ISA), and `kernels_of` hands out the table of one of them, chosen at run time.
//
// No function compiled for AVX-512 may reach a machine without it: the linker keeps one copy of each inline function
// of a program, and might keep that one. So kernel sources include headers of plain data only, keep everything else in
// anonymous namespaces, and use nothing of std; the test cpu_kernels_leak looks for weak symbols in their objects.

#include "execute/backends/cpu/kernels/attention.h"
#include "execute/backends/cpu/kernels/chain.h"
#include "execute/backends/cpu/kernels/elem.h"
#include "execute/backends/cpu/kernels/embedding.h"
#include "execute/backends/cpu/kernels/gemm.h"
#include "execute/backends/cpu/kernels/movement.h"
#include "execute/backends/cpu/kernels/optimizer.h"
#include "execute/backends/cpu/kernels/random.h"
#include "execute/backends/cpu/kernels/reduce.h"
#include "execute/backends/cpu/kernels/routing.h"
#include "execute/backends/cpu/kernels/rows.h"

// Each kernel: name and arguments. A new one is a line here and a source file.
#define SYSTOLE_CPU_KERNELS(KERNEL)                \
  KERNEL(chain, ChainArgs)                         \
  KERNEL(softmax, SoftmaxArgs)                     \
  KERNEL(cross_entropy, CrossEntropyArgs)          \
  KERNEL(cross_entropy_grad, CrossEntropyGradArgs) \
  KERNEL(rms_norm, RmsNormArgs)                    \
  KERNEL(rms_norm_grad, RmsNormGradArgs)           \
  KERNEL(layer_norm, LayerNormArgs)                \
  KERNEL(layer_norm_grad, LayerNormGradArgs)       \
  KERNEL(reduce, ReduceArgs)                       \
  KERNEL(copy, CopyArgs)                           \
  KERNEL(fill, FillArgs)                           \
  KERNEL(take_row, TakeRowArgs)                    \
  KERNEL(cache_write, CacheWriteArgs)              \
  KERNEL(embedding, EmbeddingArgs)                 \
  KERNEL(embedding_grad, EmbeddingGradArgs)        \
  KERNEL(rotary, RotaryArgs)                       \
  KERNEL(top_k, TopKArgs)                          \
  KERNEL(route, RouteArgs)                         \
  KERNEL(dropout, DropoutArgs)                     \
  KERNEL(stochastic_round, StochasticRoundArgs)    \
  KERNEL(adamw, AdamwArgs)                         \
  KERNEL(sgd, SgdArgs)                             \
  KERNEL(attention, AttentionArgs)                 \
  KERNEL(attention_grad, AttentionGradArgs)        \
  KERNEL(gemm, GemmArgs)

namespace systole::cpu {

enum class Isa : std::uint8_t { avx2, avx512 };  // x86-64-v3, x86-64-v4; products of bf16 are oneDNN's matter
constexpr int kNumIsas = 2;

struct Kernels {
#define SYSTOLE_CPU_FIELD(name, Args) KernelReport (*name)(const Args&);
  SYSTOLE_CPU_KERNELS(SYSTOLE_CPU_FIELD)
#undef SYSTOLE_CPU_FIELD
};

const char* name_of(Isa isa);  // "avx2", "avx512"
// This machine can run it. The system's leave to use the registers is included.
bool supports(Isa isa);
// The widest that this machine supports. Errors: Failure(unsupported) on a machine without AVX2 and FMA.
Isa best_isa();
// REQUIRES: supports(isa).
const Kernels& kernels_of(Isa isa);

}  // namespace systole::cpu
