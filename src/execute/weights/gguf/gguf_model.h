#pragma once
// The model in a GGUF file, in the terms in which that of a Hugging Face folder is read: a config.json, tensors, a map
// of their names. Keys and names: github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py; layouts: its
// convert_hf_to_gguf.py. They differ from Hugging Face's in this:
//
// * All linear layers hold [out, in], GPT-2's too.
// * In the architecture llama, rotary positions pair neighbours, not halves: rows 2i and 2i + 1 of a head's q and k are
//   Hugging Face's rows i and i + size / 2. They are read in Hugging Face's order.
// * The scaled rotary positions of Llama 3.1 are a tensor of factors, rope_freqs.weight, not four numbers.
// * GPT-2's q, k and v lie one after another, as here the tensors "blk.0.attn_qkv.weight.q", ".k" and ".v".
// * The head is the embedding where there is no output.weight.

#include <string>

#include "execute/weights/gguf/gguf_file.h"
#include "execute/weights/name_map.h"
#include "execute/weights/weight_files.h"

namespace systole {

// The config.json of the model. Architectures: llama (and Mistral, which is converted to it), qwen3,
// gpt2.
// Errors: corrupt, naming the key of the metadata; unsupported, naming what is; io.
Result<std::string> config_of_gguf(const GgufFile& file);

// The tensors, of quantised types as f32. `store` and `path`: those of the file, which is borrowed.
// Errors: corrupt; unsupported.
Result<WeightFiles> weights_of_gguf(GgufFile file, Store& store, const std::string& path);

// The map of a Hugging Face model (name_map) with the names and layouts of a GGUF file.
NameMap gguf_names(NameMap map);

}  // namespace systole
