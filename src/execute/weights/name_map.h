#pragma once
// Which tensor of Hugging Face's models is which of ours, family by family (transformers' modeling_gpt2.py and
// modeling_llama.py, version 5). Two things differ besides names. Llama's Linear holds a matrix [out, in], ours is
// [in, out]: turned. GPT-2's Conv1D holds [in, out] as we do, but q, k and v side by side in one: ours are its columns.
// Rotary positions pair the halves of a head in both.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/tensor/shape.h"

namespace systole {

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
  std::string tied;                   // a second name of the embedding, when it is tied; else empty
};

// Errors: unsupported when Hugging Face's family has no such model, naming the key.
Result<NameMap> name_map(const ModelSpec& model);

// Without the prefix.
NameMap without_prefix(NameMap map);

}  // namespace systole
