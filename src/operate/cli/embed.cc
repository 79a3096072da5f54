// `systole embed MODEL --in TEXTS --out VECTORS`: the vector of each line of a text, for search and clustering.

#include <unistd.h>

#include <algorithm>

#include "execute/serve/openai_embeddings.h"
#include "execute/serve/text_vectors.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "ground/store/whole_file.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_options.h"
#include "operate/cli/run_scene.h"
#include "operate/run/served_model.h"

namespace systole::cli {
namespace {

struct EmbedCommand {
  std::string model, in = "-", out, pooling, backend = "cpu";
  std::int64_t dimensions = 0, context = 0;
  bool unnormalized = false, truncate = false;
};

constexpr std::size_t kTogether = 8192;  // texts that are batched together, and whose vectors are held

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Embedding {
 public:
  Embedding(const EmbedCommand& options, const ServedModel& served, const PoolingSpec& pooling, Engine& engine)
      : options_(options),
        served_(served),
        pooling_(pooling),
        engine_(engine),
        encoder_(served.tokenizer),
        vectors_(engine) {}

  // The tokens of a line. Errors: it does not fit.
  std::vector<std::int32_t> tokens_of(std::string_view line, std::size_t number) {
    std::vector<std::int32_t> tokens = served_.tokens_of_whole(encoder_, line);
    const auto most = static_cast<std::size_t>(engine_.longest_prompt());
    const std::span<const std::int32_t> after = served_.tokenizer.after();
    if (tokens.size() > most && options_.truncate && after.size() < most) {
      tokens.resize(most - after.size());
      tokens.insert(tokens.end(), after.begin(), after.end());
      ++truncated;
    }
    if (tokens.size() > most) {
      fail(error(ErrorKind::invalid, "line {} has {}, the model takes {}", number,
                 counted(static_cast<std::int64_t>(tokens.size()), "token"), most)
               .coded(ErrorCode::context_length_exceeded)
               .hinted("split it, or leave the ends of long texts out with --truncate"));
    }
    tokens_seen += static_cast<std::int64_t>(tokens.size());
    return tokens;
  }

  // In the order of the lines. Nothing: a signal came.
  std::optional<std::string> written(std::span<const std::string_view> lines, std::size_t first,
                                     const SignalWatch& watch, const std::function<void(std::size_t)>& told) {
    TextsRequest request{.texts = {}, .pooling = pooling_, .done = {}, .is_unwanted = {}};
    for (std::size_t i = 0; i < lines.size(); ++i) request.texts.push_back(tokens_of(lines[i], first + i + 1));
    TextsRequest::Vectors made;
    request.done = [&](Result<TextsRequest::Vectors> vectors) { made = std::move(vectors).value(); };
    vectors_.add(std::move(request));
    while (vectors_.step().value()) {
      if (watch.stop_requested()) return std::nullopt;
      told(first + lines.size() - static_cast<std::size_t>(vectors_.waiting()));
    }
    std::string text;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (options_.dimensions > 0) shorten(made[i], options_.dimensions, pooling_.normalize);
      text += fmt::format("{{\"index\":{},\"embedding\":{}}}\n", first + i, vector_text(made[i]));
    }
    return text;
  }

  std::int64_t tokens_seen = 0, truncated = 0;

 private:
  const EmbedCommand& options_;
  const ServedModel& served_;
  const PoolingSpec pooling_;
  Engine& engine_;
  Encoder encoder_;
  TextVectors vectors_;
};

ExitCode embed(const EmbedCommand& options, Context& context) {
  const ServedModel served = find_model(options.model, scene_of(context).messages).value();
  const PoolingSpec pooling = pooling_needed(served, options.pooling, !options.unnormalized).value();
  const std::int64_t size = served.model->hidden_size();
  if (options.dimensions > size) {
    fail(error(ErrorKind::invalid, "--dimensions {}, and the model's vectors have {}", options.dimensions, size)
             .hinted(fmt::format("at most {}", size)));
  }
  const std::string text =
      options.in == "-" ? read_text_from(STDIN_FILENO, "standard input").value() : read_text_file(options.in).value();
  const std::vector<std::string_view> lines = lines_of(text);
  WholeFile out(options.out, "--out vectors.jsonl");
  const Machine machine = machine_for(served, options.backend, context.clock).value();
  const std::unique_ptr<Engine> engine =
      open_engine(served, machine, {.cache = served.context_for(options.context), .hidden = true, .generates = false})
          .value();
  Embedding embedding(options, served, pooling, *engine);
  const SignalWatch watch;
  const Seconds began = context.clock.now();
  for (std::size_t first = 0; first < lines.size(); first += kTogether) {
    const auto part = std::span(lines).subspan(first, std::min(kTogether, lines.size() - first));
    const std::optional<std::string> written = embedding.written(part, first, watch, [&](std::size_t done) {
      context.out.progress(fmt::format("{} of {}", done, counted(static_cast<std::int64_t>(lines.size()), "text")));
    });
    if (!written) return ExitCode::interrupted;
    out.append(*written);
  }
  out.finish();
  context.out.end_progress();
  const Seconds took = context.clock.now() - began;
  const auto count = static_cast<std::int64_t>(lines.size());
  const std::int64_t numbers = options.dimensions > 0 ? options.dimensions : size;
  context.out.notice(
      fmt::format("{} of {} numbers ({}{}) in {}: {} of {} in {}{}", counted(count, "vector"), numbers,
                  name_of(pooling.pooling), pooling.normalize ? ", normalized" : "", options.out,
                  counted(embedding.tokens_seen, "token"), counted(count, "text"), to_string(took),
                  embedding.truncated == 0 ? "" : fmt::format("; {} cut", counted(embedding.truncated, "text"))));
  context.out.json(Node::map({{"texts", count},
                              {"tokens", embedding.tokens_seen},
                              {"truncated", embedding.truncated},
                              {"dimensions", numbers},
                              {"pooling", name_of(pooling.pooling)},
                              {"normalized", pooling.normalize},
                              {"seconds_s", took.count()},
                              {"from", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"out", options.out}}));
  return ExitCode::done;
}

}  // namespace

void add_embed(Subcommand app, Context& context) {
  auto options = std::make_shared<EmbedCommand>();
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
