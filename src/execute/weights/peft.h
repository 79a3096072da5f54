#pragma once
// Adapters alone, as PEFT keeps them (src/peft/tuners/lora/config.py, utils/save_and_load.py), beside the weights
// that they were trained on: y = x W + lora_alpha / r (x A) B. A layer of theirs may hold several weights of ours side
// by side (GPT-2's c_attn); its rank is then the sum of theirs, A's are stacked, and B is zero but for each one's own
// outputs.

#include <string>

#include "execute/weights/export.h"

namespace systole {

struct AdapterOptions {
  std::string base;         // the folder of those weights
  double scale = 1;         // of what the adapters contribute
  bool transposed = false;  // the layers hold [in, out], as GPT-2's Conv1D
};

// Writes adapter_model.safetensors, lora_A [rank, in] and lora_B [out, rank] of each layer in f32, and
// adapter_config.json, each whole or absent. Errors: invalid when there are no adapters; those of the source; no_space,
// io.
Result<ExportedFiles> export_adapters(const ParameterSource& from, const NameMap& map, Store& to,
                                      const AdapterOptions& options);

}  // namespace systole
