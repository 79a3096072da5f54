#pragma once
// Reads LoRA adapters in PEFT's format (src/peft/tuners/lora/config.py, layer.py) for a server, which adds them to the
// projections of each sequence: y = x W + scale (x A^T) B^T, with scale lora_alpha / r, or lora_alpha / sqrt(r) with
// use_rslora. A layer of Hugging Face that fuses several of our projections (GPT-2's c_attn) is divided: each has the
// whole A, and its rows of B.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "describe/ir/served_adapters.h"
#include "describe/spec/workload.h"
#include "execute/runtime/executor.h"
#include "ground/store/store.h"

namespace systole {

struct LoraAdapter {
  // Of a layer: a[rank, inputs] and b[rank, outputs], row-major, with the scale in b.
  struct Layer {
    std::int64_t rank = 0;
    std::vector<float> a, b;
  };
  std::map<std::string, std::map<std::int64_t, Layer>> projections;  // "attn.q", and there by layer
  std::int64_t rank() const;                                         // the largest
};

// From adapter_config.json and adapter_model.safetensors in a folder, for this model.
// Errors: not_found: a file, or a layer or tensor; corrupt; unsupported: another method than LoRA, a variant of it, a
// rank above kMostLoraRank, a layer that is no projection; invalid: tensors of other shapes, numbers that are not
// finite; those of name_map.
Result<LoraAdapter> read_lora_adapter(Store& folder, const ModelSpec& model);
// The same, from a path that is said in errors.
Result<LoraAdapter> read_lora_adapter(const std::string& path, const ModelSpec& model);

// Of all that its answers depend on. Ranks of several machines may have other files.
std::string hash_of(const LoraAdapter& adapter);

ServedAdapters served_adapters(std::span<const LoraAdapter> adapters);
// Fills the tensors of adapters of a serving Program, or the parts of them that `device` of its mesh holds.
// REQUIRES: it was made with served_adapters of these. Errors: those of the device.
Status write_adapters(Executor& executor, std::span<const LoraAdapter> adapters, std::int64_t device = 0);

}  // namespace systole
