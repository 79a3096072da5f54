#pragma once
// Weights in int8, for serving: products of activations and a parameter become contract_int8
// (describe/ops/contract_int8.cc) with the parameter as int8 and one scale per output. Or in int4: then those of layers
// become contract_int4 (describe/ops/contract_int4.cc) with groups of 32 numbers. The head is more sensitive and stays in
// int8, and so does a matrix whose outputs are no multiple of 16 or whose summed dims are none of 32.

#include <span>
#include <string>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// A parameter that becomes two: "attn.q" f32[layer, e, h, d] → "attn.q.q8" i8[layer, h d, e] and "attn.q.scale"
// f32[layer, h d], or in int4 "attn.q.q4" u8[layer, h d / 16, e / 32, 256] and "attn.q.scale" f16[layer, h d / 16,
// e / 32, 32] (ground/tensor/int4.h). Outputs come first and summed dims last, whatever the order in the parameter.
struct Int8Weight {
  Parameter from;
  bool stacked = false;    // has a dim of layers, outermost
  std::vector<int> order;  // of the dims of one layer's tensor: its outputs, then its summed dims
  int outputs = 0;         // number of outputs in `order`
  int bits = 8;            // or 4

  const char* ending() const { return bits == 4 ? ".q4" : ".q8"; }
  std::string q8_name() const { return from.name + ending(); }
  std::string scale_name() const { return from.name + ".scale"; }
  Type tensor() const;  // of one layer: f32
  std::int64_t rows() const;
  std::int64_t columns() const;
  Type q8() const;     // i8[layer, rows, columns], or without layers; in int4 the codes
  Type scale() const;  // f32[layer, rows], or without layers; in int4 the scales and minima
};

// The parameters that have this form in all graphs of one model: each of their uses is a product over the same dims, as
// its second operand, or a lookup of the rows of such a table; directly, or in layers of a repeat. LoRA adapters are
// left out; they are small. `bits`: 4 for int4. Errors: Failure(unsupported) for the weights of experts, naming one.
std::vector<Int8Weight> int8_weights(std::span<const Graph* const> graphs, int bits = 8);

// The graph with these weights in place of their parameters. REQUIRES: int8_weights of graphs with this one.
Graph with_int8_weights(const Graph& graph, std::span<const Int8Weight> weights);

// Quantises rows [first, last) of one layer's f32 tensor, row-major, into q8[rows, columns] and scales[rows]. Other rows
// stay unchanged, so that threads may share the work.
void quantize_rows(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                   std::span<std::int8_t> q8, std::span<float> scales);
// The same of a weight in int4. Errors of values that are not finite: a scale that is not (ground/tensor/int4.h).
void quantize_rows(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                   std::span<std::uint8_t> codes, std::span<std::uint16_t> scales);

}  // namespace systole
