#pragma once
// Contractions by kernels/gemm.cc: where it is faster than oneDNN's matmul, and all of f32 on an exact device
// (contract.h), since its bits depend neither on the threads nor on the other rows.

#include <memory>

#include "execute/backends/cpu/contract.h"
#include "execute/backends/cpu/contract_places.h"
#include "execute/backends/cpu/dnnl_library.h"

namespace systole::cpu {

// Whether products of bf16 are computed in f32 on this machine, given oneDNN's instruction set. AMX multiplies bf16
// many times faster than f32, and AVX-512 BF16 is twice as fast as f32 on AMD's cores (Zen 4, two threads: 0.385 and
// 0.193 TFLOP/s), but half as fast on Intel's without AMX (Sapphire Rapids, two threads: 0.17 and 0.31). oneDNN 2.6 has
// no bf16 product below AVX-512.
bool widens_bf16(DnnlIsa isa = dnnl_isa());

// True: gemm is faster than oneDNN. Besides bf16: oneDNN 2.6 reads an f32 right operand whose rows are a multiple of
// 4 KiB apart at half its rate (1024 × 3072 × 768: 190 GFLOP/s, gemm 280), because the rows map to the same cache sets.
bool multiplies_by_gemm(const ContractPlan& plan, DType operand);

std::unique_ptr<Contraction> make_gemm_contraction(ContractPlan plan, ContractTypes types, const Kernels& kernels,
                                                   int threads);

}  // namespace systole::cpu
