#pragma once
// The families of cases; op_cases() in list.cc collects them. A new op adds a function here, a line there and a file.

#include "describe/ops/testing/op_case.h"

namespace systole {

// All cases with float type `f` (op_case.h).
OpCases op_cases(DType f);

namespace cases {

OpCases elementwise_cases(DType f);    // elementwise.cc
OpCases cast_cases(DType f);           // cast.cc
OpCases constant_cases(DType f);       // constant.cc
OpCases broadcast_cases(DType f);      // broadcast.cc: broadcast, reshape
OpCases movement_cases(DType f);       // movement.cc
OpCases paged_cases(DType f);          // paged.cc: page_write, paged_attention
OpCases reduce_cases(DType f);         // reduce.cc
OpCases contract_cases(DType f);       // contract.cc
OpCases int8_cases(DType f);           // contract_int8.cc
OpCases int4_cases(DType f);           // contract_int4.cc
OpCases lora_cases(DType f);           // lora_rows.cc
OpCases dropout_cases(DType f);        // dropout.cc
OpCases collective_cases(DType f);     // collectives.cc: refused calls only
OpCases softmax_cases(DType f);        // softmax.cc
OpCases cross_entropy_cases(DType f);  // cross_entropy.cc
OpCases rms_norm_cases(DType f);       // norms.cc
OpCases layer_norm_cases(DType f);     // norms.cc
OpCases embedding_cases(DType f);      // embedding.cc
OpCases rows_cases(DType f);           // rows.cc: gather_rows, scatter_rows
OpCases top_k_cases(DType f);          // route.cc
OpCases route_cases(DType f);          // route.cc
OpCases rotary_cases(DType f);         // rotary.cc
OpCases attention_cases(DType f);      // attention.cc
OpCases adamw_cases(DType f);          // optimizers.cc
OpCases sgd_cases(DType f);            // optimizers.cc

}  // namespace cases
}  // namespace systole
