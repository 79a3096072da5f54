#pragma once
// The files with which sentence-transformers says how a model's hidden states become vectors: modules.json lists what
// runs after the model, 1_Pooling/config.json has the pooling. Source: sentence_transformers/models/Pooling.py,
// versions 2 to 5.

#include <optional>

#include "describe/spec/pooling.h"
#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

// Nothing: the folder has no such files. Errors: corrupt; unsupported, naming the module or the pooling.
Result<std::optional<PoolingSpec>> pooling_of(Store& folder);

}  // namespace systole
