#pragma once
// The op definitions of each file of this folder; ops/list.cc collects them. A file with several ops returns a vector.
// routing.h has the rest.

#include <vector>

#include "describe/ir/op.h"

namespace systole::ops {

std::vector<OpDef> elementwise_ops();    // elementwise.cc
std::vector<OpDef> cast_ops();           // cast.cc: cast, stochastic_round
std::vector<OpDef> constant_ops();       // constant.cc: constant, iota
std::vector<OpDef> broadcast_ops();      // broadcast.cc: broadcast
std::vector<OpDef> reshape_ops();        // reshape.cc: reshape
std::vector<OpDef> movement_ops();       // movement.cc: transpose, slice, concatenate, pad, copy
std::vector<OpDef> cache_ops();          // cache.cc: take_row, cache_write
std::vector<OpDef> paged_ops();          // paged.cc: page_write, paged_attention
std::vector<OpDef> reduce_ops();         // reduce.cc: reduce_sum, reduce_max, reduce_min, sum_of_squares
OpDef contract_op();                     // contract.cc
std::vector<OpDef> int8_ops();           // contract_int8.cc: contract_int8, embedding_int8
OpDef contract_int4_op();                // contract_int4.cc
OpDef lora_rows_op();                    // lora_rows.cc
OpDef softmax_op();                      // softmax.cc
std::vector<OpDef> cross_entropy_ops();  // cross_entropy.cc: cross_entropy, cross_entropy_grad
std::vector<OpDef> rms_norm_ops();       // rms_norm.cc
std::vector<OpDef> layer_norm_ops();     // layer_norm.cc
std::vector<OpDef> embedding_ops();      // embedding.cc
OpDef rotary_op();                       // rotary.cc
std::vector<OpDef> attention_ops();      // attention.cc
OpDef dropout_op();                      // dropout.cc
OpDef adamw_op();                        // adamw.cc
OpDef sgd_op();                          // sgd.cc
std::vector<OpDef> collective_ops();     // collectives.cc
std::vector<OpDef> transfer_ops();       // transfer.cc: send, receive
OpDef take_part_op();                    // take_part.cc
OpDef repeat_op();                       // repeat.cc
OpDef fusion_op();                       // fusion.cc

}  // namespace systole::ops
