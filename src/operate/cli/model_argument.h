#pragma once
// The argument of commands that takes a model: where it is, or "models:NAME" of the registry; and how much context it
// has.

#include <string>

#include "operate/cli/command.h"
#include "operate/run/served_model.h"

namespace systole::cli {

// What such an argument may be, for the help text.
inline constexpr const char* kModelArgument =
    "RUN or RUN@STEP: a run's folder, name or number; or the folder of a Hugging Face model or of `systole quantize`, "
    "or a GGUF file; or models:NAME, models:NAME:VERSION or models:NAME@STAGE; without: the newest run";

// As find_model; says which one a registered name is.
ServedModel find_model_argument(const std::string& asked, Context& context);

// --context, as ServedModel::context_for takes it; `what`: "tokens of one text".
void add_context_option(Subcommand command, std::int64_t& context, const std::string& what);

}  // namespace systole::cli
