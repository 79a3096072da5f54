// `systole generate [RUN]`: generates text from a run's newest checkpoint, or from a Hugging Face model or a GGUF file.
// The text streams to stdout, or goes to the file of --out: the prompt and its continuation, or only the answer of an
// encoder-decoder model.

#include "ground/base/counted.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_options.h"
#include "operate/cli/run_scene.h"
#include "operate/run/generate_here.h"

namespace systole::cli {
namespace {

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

void report(const GenerateAsked& asked, const GeneratedText& answer, Context& context) {
  const std::string written = answer.interrupted ? "" : asked.out;
  const auto count = static_cast<std::int64_t>(answer.made.tokens.size());
  context.out.notice(fmt::format("on {}: loaded in {}{}{}", answer.device, to_string(answer.load),
                                 answer.first ? ", first token after " + to_string(*answer.first) : "",
                                 written.empty() ? "" : "; text in " + written));
  context.out.notice(fmt::format("{} in {}, from {}; ended {}{}", counted(count, "token"), to_string(answer.generation),
                                 answer.step ? fmt::format("step {} of {}", *answer.step, answer.from) : answer.from,
                                 words_of(answer.made.end), answer.note));
  context.out.json(Node::map({{"prompt", answer.prompt},
                              {"prompt_tokens", answer.prompt_tokens},
                              {"text", answer.text},
                              {"tokens", count},
                              {"seconds_s", answer.generation.count()},
                              {"load_s", answer.load.count()},
                              {"first_token_s", answer.first ? Node(answer.first->count()) : Node()},
                              {"start", answer.start},
                              {"device", answer.device},
                              {"from", answer.from},
                              {"step", answer.step ? Node(*answer.step) : Node()},
                              {"out", written.empty() ? Node() : Node(written)},
                              {"end", name_of(answer.made.end)},
                              {"weights", answer.weights}}));
}

ExitCode generate_text(const GenerateAsked& options, Context& context) {
  const auto put = [&](std::string_view text) { context.out.stream(text); };
  const GeneratedText answer = generate_here(options, put, scene_of(context).messages, context.clock).value();
  report(options, answer, context);
  return answer.interrupted ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_generate(Subcommand app, Context& context) {
  auto options = std::make_shared<GenerateAsked>();
  Subcommand command = add_command(app, "generate", "text out of a model", options, context, generate_text);
  SamplingOptions& sampling = options->generate.sampling;
  command.add_option("run", options->run, kModelArgument);
  command.add_option("--prompt", options->prompt, "text to go on from, or for a t5 to answer; - is standard input");
  command.add_option("--out", options->out,
                     "a file to write the text to, instead of standard output; it has its name once it is whole");
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
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
