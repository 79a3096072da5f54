#pragma once
// The CPU kernels: pure functions of pointers and sizes. They allocate nothing, never fail, and give the same bits for
// any number of threads and in every call. Each source is compiled once per instruction set, in its own namespace
// (SYSTOLE_ISA); `kernels_of` returns the table of one of them, chosen at run time.
//
// No function compiled for AVX-512 may run on a machine without it, but the linker keeps one copy of each inline
// function of a program, which might be that one. So kernel sources include headers of plain data only, keep everything
// else in anonymous namespaces, and use nothing of std. The test cpu_kernels_leak looks for weak symbols in their
// objects.

#include "execute/backends/cpu/kernels/attention.h"
#include "execute/backends/cpu/kernels/chain.h"
#include "execute/backends/cpu/kernels/elem.h"
#include "execute/backends/cpu/kernels/embedding.h"
#include "execute/backends/cpu/kernels/gemm.h"
#include "execute/backends/cpu/kernels/int4.h"
#include "execute/backends/cpu/kernels/int8.h"
#include "execute/backends/cpu/kernels/lora.h"
#include "execute/backends/cpu/kernels/movement.h"
#include "execute/backends/cpu/kernels/optimizer.h"
#include "execute/backends/cpu/kernels/paged.h"
#include "execute/backends/cpu/kernels/random.h"
#include "execute/backends/cpu/kernels/reduce.h"
#include "execute/backends/cpu/kernels/routing.h"
#include "execute/backends/cpu/kernels/rows.h"

// Name and arguments of each kernel. A new kernel is a line here and a source file.
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
  KERNEL(page_write, PageWriteArgs)                \
  KERNEL(paged_attention, PagedAttentionArgs)      \
  KERNEL(gemm, GemmArgs)                           \
  KERNEL(contract_int8, ContractInt8Args)          \
  KERNEL(embedding_int8, EmbeddingInt8Args)        \
  KERNEL(contract_int4, ContractInt4Args)          \
  KERNEL(lora_rows, LoraRowsArgs)

namespace systole::cpu {

enum class Isa : std::uint8_t { avx2, avx512 };  // x86-64-v3, x86-64-v4; oneDNN handles products of bf16
constexpr int kNumIsas = 2;

struct Kernels {
#define SYSTOLE_CPU_FIELD(name, Args) KernelReport (*name)(const Args&);
  SYSTOLE_CPU_KERNELS(SYSTOLE_CPU_FIELD)
#undef SYSTOLE_CPU_FIELD
};

const char* name_of(Isa isa);  // "avx2", "avx512"
// Whether this machine can run it; checks that the system enables its registers.
bool supports(Isa isa);
// The widest instruction set that this machine supports. Errors: Failure(unsupported) without AVX2 and FMA.
Isa best_isa();
// REQUIRES: supports(isa).
const Kernels& kernels_of(Isa isa);

// The fastest unit that the kernels of `isa` and this machine have; all give the same bits. The first call asks the
// system for the use of AMX's tiles by this process.
Int8Unit best_int8_unit(Isa isa);

}  // namespace systole::cpu
