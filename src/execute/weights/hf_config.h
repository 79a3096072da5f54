#pragma once
// Converts a Hugging Face config.json to keys of our model spec, and back.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"

namespace systole {

// The model of a config.json (model_type gpt2, llama, mistral, qwen3 or t5), as values of keys. Keys that the weights determine are
// fixed: the workload may not change them. `name` is the file's.
// Errors: corrupt; unsupported, naming the entry that we do not support.
Result<std::vector<ImportedValue>> values_of_config(std::string_view json, const std::string& name);

// True if the head may be tied to the embedding although the keys give it weights of its own: transformers 5 writes a
// T5 with tie_word_embeddings: true and scale_decoder_outputs: false whether or not its head is tied, so only the
// weights tell.
bool head_may_be_embedding(std::string_view json);

// The config.json of a model. `eos`: the token that ends a T5's answer, if known. REQUIRES: name_map(model) is ok.
std::string config_of(const ModelSpec& model, std::optional<std::int64_t> eos = std::nullopt);

}  // namespace systole
