#pragma once
// Fills an engine whose weights are in int8 or int4 from parameters in f32 or bf16: tensor by tensor, one layer of a
// stack at a time. Weights that are stored in int4's form already are put in as they are. Beside the engine's memory it
// needs the largest tensor, as stored and in f32.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/engine.h"
#include "ground/tensor/int4.h"

namespace systole {

// Fills the parameters that an executor has, by their names; an executor may have some of the model's only.
using LoadSome = std::function<Status(Executor&)>;

// One layer's tensor of a weight in int4 as it is stored, its groups row by row; nothing: it is stored otherwise.
// `parameter`: "blocks.3.attn.q".
using StoredInt4 =
    std::function<Result<std::optional<std::vector<Int4Block>>>(const std::string& parameter, const Int8Weight&)>;

// `stored`: the type in which `load` takes parameters. `host`: a device whose memory the host sees, for the tensor that
// is being quantised. `int4`: may be empty. Errors: those of `load`, `int4` and the devices; invalid, naming a tensor
// with a value that is not finite.
Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host,
                 const StoredInt4& int4 = {});

}  // namespace systole
