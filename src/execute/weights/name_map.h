#pragma once
// Which tensor of Hugging Face's models is which of ours, family by family (transformers' modeling_gpt2.py,
// modeling_llama.py and modeling_t5.py, version 5). Two things differ besides names. Llama's and T5's Linear holds a
// matrix [out, in], ours is [in, out]: turned. GPT-2's Conv1D holds [in, out] as we do, but q, k and v side by side in
// one: ours are its columns. Rotary positions pair the halves of a head in both; T5's relative biases stand in the
// first layer of each stack and serve all of it.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/tensor/shape.h"

namespace systole {

constexpr const char* kHead = "lm_head.weight";  // of every family, and never prefixed

struct MappedTensor {
  std::string theirs;
  Shape shape;               // of theirs: [columns] or [rows, columns]
  std::string ours;          // "blocks.3.attn.q"
  std::int64_t columns = 0;  // of theirs that are ours, from `first` on
  std::int64_t first = 0;
  bool turned = false;  // ours, row-major, is the transpose of theirs; then all columns are ours
};

struct NameMap {
  std::vector<MappedTensor> tensors;  // those of one of their tensors stand together
  std::string prefix;                 // "transformer.": models without a head are saved without it
  std::vector<std::string> empty;     // ends of names that old files hold besides: masks and tables, no weights
  std::vector<std::string> copies;    // names under which a file may hold the embedding once more, the same to the bit
  std::string embedding;              // theirs, that those are copies of
};

// Errors: unsupported when Hugging Face's family has no such model, naming the key.
Result<NameMap> name_map(const ModelSpec& model);

// Without the prefix.
NameMap without_prefix(NameMap map);

// The head is read out of the embedding's tensor, where the files have none of its own. REQUIRES: the model has one.
NameMap with_head_of_embedding(NameMap map);

}  // namespace systole
