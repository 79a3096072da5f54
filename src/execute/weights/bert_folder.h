#pragma once
// The folder of a Hugging Face BertModel, with or without heads (transformers' modeling_bert.py, version 5), for its
// hidden states: heads and pooler are not read. The safetensors, the tokenizer and the name map are as in hf_folder.h.

#include "describe/spec/families/bert.h"
#include "execute/weights/hf_folder.h"

namespace systole {

// Whether the folder's config.json is of model_type bert.
bool is_bert_folder(const std::string& path);

// The sizes of a config.json; `name` is the file's. Errors: corrupt; unsupported, naming the entry.
Result<BertSpec> bert_of_config(std::string_view json, const std::string& name);

// Reads headers only; head.* stay unmapped. Errors: as open_hf_folder, and of bert_of_config.
struct BertFolder {
  BertSpec model;
  std::shared_ptr<HfFolder> folder;
};
Result<BertFolder> open_bert_folder(const std::string& path);

}  // namespace systole
