#pragma once
// Fills an engine whose weights are in int8 from parameters in f32 or bf16: tensor by tensor, one layer of a stack at a
// time. Beside the engine's memory it needs the largest tensor, as stored and in f32.

#include <functional>

#include "execute/serve/engine.h"

namespace systole {

// Fills the parameters that an executor has, by their names; an executor may have some of the model's only.
using LoadSome = std::function<Status(Executor&)>;

// `stored`: the type in which `load` takes parameters. `host`: a device whose memory the host sees, for the tensor that
// is being quantised. Errors: those of `load` and of the devices; invalid, naming a tensor with a value that is not
// finite.
Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host);

}  // namespace systole
