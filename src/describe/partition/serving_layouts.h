#pragma once
// How serving cuts a model over the devices of the mesh axis "model", so that no sum of a product is cut: each weight is
// cut along a dim of its results (heads, kv_heads, mlp, vocab; embed where the others are summed over), the cache along
// kv_heads, and activations are gathered where the next product sums over them. Training sums partial products instead
// (Shoeybi et al., "Megatron-LM", 2019), whose rounding depends on the number of devices. Here each number is computed
// by one device, in the order of one device, so the answers of any number of devices have the same bits wherever a
// product's bits do not depend on its number of columns (CpuOptions::exact).
//
// Of a LoRA adapter (describe/ir/served_adapters.h) B is cut as the results of its projection are, and A is whole: each
// device has the whole rows of x, since the projection's product sums over them, and computes x A^T for itself.
//
// Norms, biases of embed and positions are whole on every device. The table of tokens is cut along vocab: a device looks
// up its tokens and has zeros for the others, whose sum is exact.

#include "describe/ir/ir.h"
#include "describe/partition/choose.h"
#include "describe/program/layout.h"

namespace systole {

constexpr const char* kServingAxis = "model";

// Of so many devices; trivial: one.
Mesh serving_mesh(std::int64_t parts);

std::vector<AxisRule> serving_rules();

// REQUIRES (all): the mesh is a serving_mesh of several devices.
Layout serving_layout(const Parameter& parameter, const Mesh& mesh);
Layout cache_layout(const Type& cache, const Mesh& mesh);
Layout adapter_layout(const std::string& name, const Type& tensor, const Mesh& mesh);

}  // namespace systole
