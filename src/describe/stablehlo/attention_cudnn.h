#pragma once
// Attention by cuDNN's fused kernels, which XLA for NVIDIA calls for custom calls of these names. They read q, k and v
// without a transpose, materialise no scores, and their statistic is our lse.
//
// Sources: the custom calls' names, operands and configuration as jax writes them
// (https://github.com/jax-ml/jax/blob/main/jax/_src/cudnn/fused_attention_stablehlo.py); their proto is
// CudnnfMHABackendConfig of XLA (xla/service/gpu/backend_configs.proto). Both as of jax 0.10.2.

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

// Whether the options select cuDNN and it supports the call of attention or attention_grad; leaves a note. `first`:
// number of operands before the masks. cuDNN takes bf16 and f16, head sizes up to 128 in steps of 8, and either no mask
// or a causal mask with as many queries as keys.
bool goes_to_cudnn(const NodeCall& call, int first);

// Results: o and lse; for the gradient dq, dk and dv. REQUIRES: goes_to_cudnn.
std::vector<Ssa> attention_by_cudnn(Builder& b, const NodeCall& call);
std::vector<Ssa> attention_grad_by_cudnn(Builder& b, const NodeCall& call);

}  // namespace systole::stablehlo
