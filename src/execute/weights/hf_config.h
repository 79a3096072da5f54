#pragma once
// A Hugging Face config.json as keys of our model, and back.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"

namespace systole {

// The model that a config.json describes (model_type gpt2, llama or t5), as values of keys. Those that the weights
// decide are fixed: the workload may not say otherwise. `name` is the file's. Errors: corrupt; unsupported, naming the
// entry that we cannot follow.
Result<std::vector<ImportedValue>> values_of_config(std::string_view json, const std::string& name);

// Whether the head of the model may be its embedding though the keys give it one of its own: transformers 5 writes a T5
// with tie_word_embeddings: true and scale_decoder_outputs: false, be its head tied or not, and the weights tell.
bool head_may_be_embedding(std::string_view json);

// A config.json of such a model. `eos`: the token that a t5's answer ends with, where it is known. REQUIRES:
// name_map(model) is ok.
std::string config_of(const ModelSpec& model, std::optional<std::int64_t> eos = std::nullopt);

}  // namespace systole
