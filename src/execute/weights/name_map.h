#pragma once
// Maps tensor names of Hugging Face models to ours, per family (transformers' modeling_gpt2.py, modeling_llama.py,
// modeling_qwen3.py and modeling_t5.py, version 5; Mistral's are Llama's). Layouts differ too. The Linear of Llama and T5 holds [out, in], ours is [in, out]:
// `turned`, a transpose. GPT-2's Conv1D holds [in, out] like ours, but with q, k and v side by side in one tensor: ours
// are column ranges of it. Rotary positions pair the two halves of a head in ours and theirs. T5 stores its relative
// biases in the first layer of each stack, for all layers.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/tensor/shape.h"

namespace systole {

constexpr const char* kHead = "lm_head.weight";  // in every family, without prefix

struct MappedTensor {
  std::string theirs;
  Shape shape;               // of `theirs`: [columns] or [rows, columns]
  std::string ours;          // "blocks.3.attn.q"
  std::int64_t columns = 0;  // number of columns that are ours, from `first` on
  std::int64_t first = 0;
  bool turned = false;  // ours is the transpose of theirs; then all columns are ours
};

struct NameMap {
  std::vector<MappedTensor> tensors;  // entries of one HF tensor are adjacent
  std::string prefix;                 // "transformer."; models without a head are saved without it
  std::vector<std::string> empty;     // suffixes of extra names in old files: masks and tables, no weights
  std::vector<std::string> copies;    // names of bit-identical copies of the embedding that a file may have
  std::string embedding;              // HF name of the original of `copies`
  bool transposed = false;            // linear layers hold [in, out], as in GPT-2's Conv1D
  bool has_head() const;              // the model has a head of its own
};

// Errors: unsupported if the Hugging Face family has no such model, naming the key.
Result<NameMap> name_map(const ModelSpec& model);

// The map without the prefix.
NameMap without_prefix(NameMap map);

// The map with the head read from the embedding's tensor, for files without a head. REQUIRES: the model has one.
NameMap with_head_of_embedding(NameMap map);

}  // namespace systole
