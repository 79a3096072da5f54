// `systole embed MODEL --in TEXTS --out VECTORS`: the vector of each line of a text, for search and clustering.

#include "operate/run/embed_here.h"

#include "ground/base/counted.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_options.h"
#include "operate/cli/run_scene.h"

namespace systole::cli {
namespace {

ExitCode embed(const EmbedOptions& options, Context& context) {
  const auto progress = [&](const std::string& text) { context.out.progress(text); };
  const EmbeddedTexts made = embed_here(options, progress, scene_of(context).messages, context.clock).value();
  if (made.interrupted) return ExitCode::interrupted;
  context.out.end_progress();
  const PoolingSpec& pooling = made.pooling;
  context.out.notice(fmt::format("{} of {} numbers ({}{}) in {}: {} of {} in {}{}", counted(made.texts, "vector"),
                                 made.numbers, name_of(pooling.pooling), pooling.normalize ? ", normalized" : "",
                                 options.out, counted(made.tokens, "token"), counted(made.texts, "text"),
                                 to_string(made.took),
                                 made.truncated == 0 ? "" : fmt::format("; {} cut", counted(made.truncated, "text"))));
  context.out.json(Node::map({{"texts", made.texts},
                              {"tokens", made.tokens},
                              {"truncated", made.truncated},
                              {"dimensions", made.numbers},
                              {"pooling", name_of(pooling.pooling)},
                              {"normalized", pooling.normalize},
                              {"seconds_s", made.took.count()},
                              {"from", made.from},
                              {"step", made.step ? Node(*made.step) : Node()},
                              {"out", options.out}}));
  return ExitCode::done;
}

}  // namespace

void add_embed(Subcommand app, Context& context) {
  auto options = std::make_shared<EmbedOptions>();
  Subcommand command = add_command(app, "embed", "the vector of each line of a text", options, context, embed);
  command
      .add_option("model", options->model,
                  "the folder of a Hugging Face model (bert, or one that writes text) or of `systole quantize`, a GGUF "
                  "file, RUN or RUN@STEP, or models:NAME, models:NAME:VERSION or models:NAME@STAGE")
      .required();
  command.add_option("--in", options->in, "a file with a text a line; - is standard input").capture_default_str();
  command.add_option("--out", options->out, "the file to write: a line of JSON for each text, in their order")
      .required();
  add_pooling_options(command, options->pooling, options->unnormalized, "how the tokens' states become one vector");
  command.add_option("--dimensions", options->dimensions, "so many of each vector's numbers; 0: all")
      .check(at_least(0))
      .capture_default_str();
  add_context_option(command, options->context, "tokens of one text");
  command.add_flag("--truncate", options->truncate, "leave out the end of a text that has more tokens");
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
