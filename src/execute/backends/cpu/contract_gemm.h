#pragma once
// Contractions by kernels/gemm.cc, where it is faster than oneDNN's product.

#include <memory>

#include "execute/backends/cpu/contract.h"
#include "execute/backends/cpu/contract_places.h"
#include "execute/backends/cpu/dnnl_library.h"

namespace systole::cpu {

// Whether products of bf16 are made in f32 on this machine, with these instructions of oneDNN's. AMX multiplies bf16
// many times faster than f32, and AVX-512 BF16 twice as fast on AMD's cores (Zen 4, two threads: 0.385 beside 0.193
// TFLOP/s), but half as fast on Intel's without AMX (Sapphire Rapids, two threads: 0.17 beside 0.31), and oneDNN 2.6
// has nothing for bf16 below AVX-512.
bool widens_bf16(DnnlIsa isa = dnnl_isa());

// gemm rather than oneDNN. Besides bf16: oneDNN 2.6 reads an f32 right operand whose rows lie a multiple of 4 KiB apart
// at half its rate (1024 × 3072 × 768: 190 GFLOP/s, gemm 280), because they fall into the same cache lines.
bool multiplies_by_gemm(const ContractPlan& plan, DType operand);

std::unique_ptr<Contraction> make_gemm_contraction(ContractPlan plan, ContractTypes types, const Kernels& kernels,
                                                   int threads);

}  // namespace systole::cpu
