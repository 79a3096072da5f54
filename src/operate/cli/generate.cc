// `systole generate [RUN]`: generates text from a run's newest checkpoint, or from a Hugging Face model or a GGUF file.
// The text streams to stdout: the prompt and its continuation, or only the answer of an encoder-decoder model.

#include <unistd.h>

#include <algorithm>

#include "execute/data/tokenizer.h"
#include "execute/serve/generate.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/speculate_option.h"
#include "operate/cli/weights_option.h"
#include "operate/run/served_model.h"

namespace systole::cli {
namespace {

struct GenerateCommand {
  std::string run, prompt, speculate, backend = "cpu";
  GenerateOptions generate;
  WeightsOption weights;
};

std::string text_of(const std::string& prompt) {
  return prompt == "-" ? read_text_from(STDIN_FILENO, "standard input").value() : prompt;
}

const char* words_of(SequenceEnd end) {
  switch (end) {
    case SequenceEnd::stop: return "at the end of the document";
    case SequenceEnd::max_tokens: return "with as many tokens as were asked for";
    case SequenceEnd::cache_full: return "where the model's context is full";
    case SequenceEnd::asked: return "by a signal";
    case SequenceEnd::no_token: return "where no token may follow";
  }
  return "";
}

ExitCode generate_text(const GenerateCommand& options, Context& context) {
  GenerateOptions wanted = options.generate;
  check(wanted.sampling).value();
  const std::int64_t drafts = drafts_for(options.speculate, options.backend).value();
  const ServedModel served = find_model(options.run).value();
  const WeightsOption weights = options.weights.of(served);
  const Tokenizer& tokenizer = served.tokenizer;
  const Machine machine = machine_for(served, options.backend, context.clock).value();
  const bool encoded = served.encodes();
  Encoder encoder(tokenizer);
  const std::vector<std::vector<std::int32_t>> prompts{served.tokens_of(encoder, text_of(options.prompt))};
  if (!served.step && !encoded && !tokenizer.after().empty()) {
    context.out.notice(fmt::format(
        "the model's tokenizer ends a text with {} that {} left out here, so that it goes on",
        tokenizer.after().size() == 1 ? "a token" : "tokens", tokenizer.after().size() == 1 ? "is" : "are"));
  }
  const auto length = static_cast<std::int64_t>(prompts[0].size());
  // A published model's context is longer than one prompt needs.
  const std::unique_ptr<Engine> engine =
      open_engine(
          served, machine,
          {.cache = served.step ? 0 : length + wanted.max_tokens, .parameter = weights.parameter(), .drafts = drafts})
          .value();

  const std::string prompt = tokenizer.decode(prompts[0]).value();  // special tokens decode to nothing
  wanted.stop = {tokenizer.eos()};
  wanted.sampling.never = served.never_drawn(engine->vocabulary());
  const SignalWatch watch;
  if (!encoded) context.out.stream(prompt);
  const Seconds began = context.clock.now();
  bool blank = encoded && tokenizer.begins_with_space();  // so far: leading spaces of an answer are skipped
  const std::vector<Generated> made = generate(*engine, prompts, wanted, [&](std::size_t, std::int32_t token) {
                                        std::string_view bytes = tokenizer.bytes_of(token);
                                        if (blank)
                                          bytes.remove_prefix(std::min(bytes.find_first_not_of(' '), bytes.size()));
                                        blank = blank && bytes.empty();
                                        context.out.stream(bytes);
                                        return !watch.stop_requested();
                                      }).value();
  const Seconds took = context.clock.now() - began;
  const auto count = static_cast<std::int64_t>(made[0].tokens.size());
  context.out.stream("\n");
  context.out.notice(fmt::format("{} in {}, from {}; ended {}{}", counted(count, "token"), to_string(took),
                                 served.step ? fmt::format("step {} of {}", *served.step, served.name) : served.name,
                                 words_of(made[0].end), weights.note(engine->program())));
  context.out.json(Node::map({{"prompt", prompt},
                              {"prompt_tokens", length},
                              {"text", tokenizer.decode(made[0].tokens).value()},
                              {"tokens", count},
                              {"seconds_s", took.count()},
                              {"from", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"end", name_of(made[0].end)},
                              {"weights", weights.kind}}));
  return made[0].end == SequenceEnd::asked ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_generate(Subcommand app, Context& context) {
  auto options = std::make_shared<GenerateCommand>();
  Subcommand command =
      add_command(app, "generate", "text out of a run's newest checkpoint", options, context, generate_text);
  SamplingOptions& sampling = options->generate.sampling;
  command.add_option("run", options->run,
                     "RUN or RUN@STEP: a run's folder, name or number; the folder of a Hugging Face model or of "
                     "`systole quantize`, or a GGUF file; without: the newest");
  command.add_option("--prompt", options->prompt, "text to go on from, or for a t5 to answer; - is standard input");
  command.add_option("--tokens", options->generate.max_tokens, "new tokens, at most")
      .check(at_least(1))
      .capture_default_str();
  command
      .add_option("--min-tokens", options->generate.min_tokens,
                  "so many come before the end of a document may be drawn")
      .check(at_least(0))
      .capture_default_str();
  command.add_option("--temperature", sampling.temperature, "0: always the likeliest; 1: as the model says")
      .capture_default_str();
  command.add_option("--top-k", sampling.top_k, "draw from the K likeliest; 0: from all").capture_default_str();
  command.add_option("--top-p", sampling.top_p, "draw from the fewest that have this probability together")
      .capture_default_str();
  command.add_option("--min-p", sampling.min_p, "draw from those at least so many times as likely as the likeliest")
      .capture_default_str();
  command
      .add_option("--repetition-penalty", sampling.repetition_penalty,
                  "above 1: what the prompt and the answer have becomes less likely")
      .capture_default_str();
  add_weights_option(command, options->weights);
  add_speculate_option(command, options->speculate);
  command.add_option("--seed", sampling.seed, "of the draws; the same seed gives the same text").capture_default_str();
  add_device_options(command, options->backend, "cpu, or reference: slow").capture_default_str();
}

}  // namespace systole::cli
