#pragma once
// Exports LoRA adapters in PEFT's format (src/peft/tuners/lora/config.py, utils/save_and_load.py), relative to the
// weights that they were trained on: y = x W + lora_alpha / r (x A) B. An HF layer may fuse several of our weights
// (GPT-2's c_attn). Then its rank is the sum of their ranks, the A are stacked, and B is zero outside each weight's own
// outputs.

#include <string>

#include "execute/weights/export.h"

namespace systole {

struct AdapterOptions {
  std::string base;         // folder of the base weights
  double scale = 1;         // factor of the adapters' contribution
  bool transposed = false;  // the layers hold [in, out], as in GPT-2's Conv1D
};

// Writes adapter_model.safetensors (lora_A [rank, in] and lora_B [out, rank] of each layer in f32) and
// adapter_config.json, each whole or absent.
// Errors: invalid if there are no adapters; those of the source; no_space, io.
Result<ExportedFiles> export_adapters(const ParameterSource& from, const NameMap& map, Store& to,
                                      const AdapterOptions& options);

}  // namespace systole
