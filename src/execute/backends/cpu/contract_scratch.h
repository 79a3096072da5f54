#pragma once
// How much scratch oneDNN may want for a product: a bound from the product's shape alone, so that a plan needs no
// oneDNN. contract.cc refuses a primitive that wants more.

#include <cstdint>

#include "execute/backends/cpu/contract_plan.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "ground/tensor/dtype.h"

namespace systole::cpu {

// Bytes for `k` of the plan's summed elements, products of `operand` summed into `y`; `adds`: to what is there already.
std::int64_t matmul_scratch(const ContractPlan& plan, std::int64_t k, DType operand, DType y, bool adds, DnnlIsa isa,
                            int threads);

}  // namespace systole::cpu
