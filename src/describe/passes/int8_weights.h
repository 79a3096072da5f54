#pragma once
// Weights in int8, for serving: products of activations and a parameter become contract_int8
// (describe/ops/contract_int8.cc) with the parameter as int8 and one scale per output.

#include <span>
#include <string>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// A parameter that becomes two: "attn.q" f32[layer, e, h, d] → "attn.q.q8" i8[layer, h d, e] and "attn.q.scale"
// f32[layer, h d]. Outputs come first and summed dims last, whatever the order in the parameter.
struct Int8Weight {
  Parameter from;
  bool stacked = false;    // has a dim of layers, outermost
  std::vector<int> order;  // of the dims of one layer's tensor: its outputs, then its summed dims
  int outputs = 0;         // number of outputs in `order`

  std::string q8_name() const { return from.name + ".q8"; }
  std::string scale_name() const { return from.name + ".scale"; }
  Type tensor() const;  // of one layer: f32
  std::int64_t rows() const;
  std::int64_t columns() const;
  Type q8() const;     // i8[layer, rows, columns], or without layers
  Type scale() const;  // f32[layer, rows], or without layers
};

// The parameters that have this form in all graphs of one model: each of their uses is a product over the same dims, as
// its second operand, or a lookup of the rows of such a table; directly, or in layers of a repeat. LoRA adapters are
// left out; they are small. Errors: Failure(unsupported) for the weights of experts, naming one.
std::vector<Int8Weight> int8_weights(std::span<const Graph* const> graphs);

// The graph with these weights in place of their parameters. REQUIRES: int8_weights of graphs with this one.
Graph with_int8_weights(const Graph& graph, std::span<const Int8Weight> weights);

// Quantises rows [first, last) of one layer's f32 tensor, row-major, into q8[rows, columns] and scales[rows]. Other rows
// stay unchanged, so that threads may share the work.
void quantize_rows(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                   std::span<std::int8_t> q8, std::span<float> scales);

}  // namespace systole
