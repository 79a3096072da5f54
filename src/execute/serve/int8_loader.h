#pragma once
// Fills an engine whose weights are in int8 or int4 from parameters in f32 or bf16, by several threads. Matrices that
// are rows of a file are converted row by row, or put in as they are if they are stored in int4's form; others tensor by
// tensor, one layer of a stack at a time. Beside the engine's memory it needs the largest of those, as stored and in
// f32, and kPieceNumbers for each thread. An engine that is a rank's gets that rank's parts: each row is quantised as in
// the whole.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/engine.h"
#include "ground/tensor/stored_rows.h"

namespace systole {

// Fills the parameters that an executor has, by their names; an executor may have some of the model's only.
using LoadSome = std::function<Status(Executor&)>;

constexpr std::int64_t kPieceNumbers = std::int64_t{1} << 17;  // that a thread reads at once, or the rows of a head

// The rows of one layer's tensor of a weight, as a file has them; nothing: it is to be loaded. `parameter`:
// "blocks.3.attn.q". Of a weight that is a rank's part: the rows of that part.
using FindRows = std::function<std::optional<StoredRows>(const std::string& parameter, const Int8Weight&)>;

// `stored`: the type in which `load` takes parameters. `host`: a device whose memory the host sees, for the tensor that
// is being quantised. `rows`: may be empty; the numbers that `load` would give. Errors: those of `load`, of reading the
// rows and of the devices; invalid, naming a tensor with a value that is not finite.
Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host,
                 const FindRows& rows = {});

}  // namespace systole
