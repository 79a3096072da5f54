#pragma once
// The options that the commands which ask a model share, each declared once.

#include <string>

#include "operate/cli/options.h"

namespace systole {
struct ServingRanksArguments;
struct WeightsOption;
}  // namespace systole

namespace systole::cli {

// What an argument that takes a model may be, for the help text.
inline constexpr const char* kModelArgument =
    "RUN or RUN@STEP: a run's folder, name or number; or the folder of a Hugging Face model or of `systole quantize`, "
    "or a GGUF file; or models:NAME, models:NAME:VERSION or models:NAME@STAGE; without: the newest run";

// --context, as ServedModel::context_for takes it; `what`: "tokens of one text".
void add_context_option(Subcommand command, std::int64_t& context, const std::string& what);

// --pooling and --unnormalized, as pooling_for takes them; `what`: what is made of a text, `unless` ends its help.
void add_pooling_options(Subcommand command, std::string& pooling, bool& unnormalized, const std::string& what,
                         const std::string& unless = {});

// --weights: how the model's matrices are kept in memory.
void add_weights_option(Subcommand command, WeightsOption& option);

// --cache-type: how keys and values are kept.
void add_cache_type_option(Subcommand command, std::string& type);

// --speculate, as speculation_for (operate/run/speculation.h) takes it; "": none.
void add_speculate_option(Subcommand command, std::string& asked);

// --ranks: processes that hold a model together. Alone, of this machine; `machines`: with the options for several.
void add_ranks_option(Subcommand command, ServingRanksArguments& ranks, bool machines);

}  // namespace systole::cli
