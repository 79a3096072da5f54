#pragma once
// Attention as cuDNN's fused kernels, which XLA for NVIDIA calls for custom calls of these names. They read q, k, v as
// they lie, hold no scores, and their statistic is our lse.
//
// Sources: the custom calls' names, operands and configuration as jax writes them
// (https://github.com/jax-ml/jax/blob/main/jax/_src/cudnn/fused_attention_stablehlo.py); their proto is
// CudnnfMHABackendConfig of XLA (xla/service/gpu/backend_configs.proto). Both as of jax 0.10.2.

#include <optional>

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

// Why cuDNN does not take a call of attention or attention_grad ("segments"), or nothing. `first`: operands before the
// masks. It takes bf16 and f16, heads of up to 128 in steps of 8, all keys or causal ones of as many queries.
std::optional<std::string> cudnn_refuses(const NodeCall& call, int first);

// o and lse; dq, dk and dv. REQUIRES: cudnn_refuses gives nothing.
std::vector<Ssa> attention_by_cudnn(Builder& b, const NodeCall& call);
std::vector<Ssa> attention_grad_by_cudnn(Builder& b, const NodeCall& call);

// Decides by the options and leaves the note.
bool goes_to_cudnn(const NodeCall& call, int first);

}  // namespace systole::stablehlo
