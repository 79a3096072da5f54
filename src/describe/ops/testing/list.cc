#include "describe/ops/testing/list.h"

namespace systole {

OpCases op_cases(DType f) {
  using namespace cases;
  OpCases all;
  for (auto family : {elementwise_cases, cast_cases,          constant_cases, broadcast_cases,  movement_cases,
                      paged_cases,       reduce_cases,        contract_cases, dropout_cases,    collective_cases,
                      softmax_cases,     cross_entropy_cases, rms_norm_cases, layer_norm_cases, embedding_cases,
                      rows_cases,        top_k_cases,         route_cases,    rotary_cases,     attention_cases,
                      adamw_cases,       sgd_cases,           int8_cases,     lora_cases,       int4_cases}) {
    all += family(f);
  }
  return all;
}

}  // namespace systole
