#pragma once
// Upper bound of oneDNN's scratchpad for a product, from the product's shape alone, so that planning needs no oneDNN.
// contract.cc refuses a primitive that needs more.

#include <cstdint>

#include "execute/backends/cpu/contract_plan.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "ground/tensor/dtype.h"

namespace systole::cpu {

// Bytes for `k` of the plan's summed elements: products of `operand` summed into `y`; `adds`: y += instead of y =.
std::int64_t matmul_scratch(const ContractPlan& plan, std::int64_t k, DType operand, DType y, bool adds, DnnlIsa isa,
                            int threads);

}  // namespace systole::cpu
