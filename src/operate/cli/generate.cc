// `systole generate [RUN]`: generates text from a run's newest checkpoint, or from a Hugging Face model or a GGUF file.
// The text streams to stdout, or goes to the file of --out: the prompt and its continuation, or only the answer of an
// encoder-decoder model.

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "execute/data/tokenizer.h"
#include "execute/serve/generate.h"
#include "ground/base/counted.h"
#include "ground/base/start_phases.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_argument.h"
#include "operate/cli/ranks_option.h"
#include "operate/cli/speculate_option.h"
#include "operate/cli/weights_option.h"
#include "operate/cli/whole_file.h"
#include "operate/run/speculation.h"

namespace systole::cli {
namespace {

struct GenerateCommand {
  std::string run, prompt, out, speculate, backend = "cpu";
  GenerateOptions generate;
  WeightsOption weights;
  ServingRanksArguments ranks;
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

struct Answer {
  Generated made;
  std::string prompt;
  std::int64_t prompt_tokens = 0;
  Seconds load{}, generation{};
  std::optional<Seconds> first;  // of the first token; nothing: there is none
};

// Generates, and hands each piece of the text to `put`.
void make_answer(const ServedModel& served, Engine& engine, GenerateOptions wanted, Clock& clock,
                 const std::vector<std::vector<std::int32_t>>& prompts, Answer& result, StartPhases& phases,
                 const std::function<void(std::string_view)>& put) {
  const Tokenizer& tokenizer = served.tokenizer;
  const bool encoded = served.encodes();
  result.prompt = tokenizer.decode(prompts[0]).value();  // special tokens decode to nothing
  result.prompt_tokens = static_cast<std::int64_t>(prompts[0].size());
  wanted.stop = {tokenizer.eos()};
  wanted.sampling.never = served.never_drawn(engine.vocabulary());
  const SignalWatch watch;
  if (!encoded) put(result.prompt);
  const Seconds began = clock.now();
  bool blank = encoded && tokenizer.begins_with_space();  // so far: leading spaces of an answer are skipped
  const auto take = [&](std::size_t, std::int32_t token) {
    if (!result.first) {
      result.first = clock.now() - began;
      phases.end("first_token");
    }
    std::string_view bytes = tokenizer.bytes_of(token);
    if (blank) bytes.remove_prefix(std::min(bytes.find_first_not_of(' '), bytes.size()));
    blank = blank && bytes.empty();
    put(bytes);
    return !watch.stop_requested();
  };
  result.made = std::move(generate(engine, prompts, wanted, take).value()[0]);
  result.generation = clock.now() - began;
  put("\n");
}

// `written`: the file that has the text now; empty: none.
void report(const WeightsOption& weights, const ServedModel& served, const Program& program, const Answer& answer,
            const std::string& written, const StartPhases& phases, Context& context) {
  const auto count = static_cast<std::int64_t>(answer.made.tokens.size());
  context.out.notice(fmt::format("on {}: loaded in {}{}{}", program.target.name, to_string(answer.load),
                                 answer.first ? ", first token after " + to_string(*answer.first) : "",
                                 written.empty() ? "" : "; text in " + written));
  context.out.notice(fmt::format("{} in {}, from {}; ended {}{}", counted(count, "token"), to_string(answer.generation),
                                 served.step ? fmt::format("step {} of {}", *served.step, served.name) : served.name,
                                 words_of(answer.made.end), weights.note(program)));
  context.out.json(Node::map({{"prompt", answer.prompt},
                              {"prompt_tokens", answer.prompt_tokens},
                              {"text", served.tokenizer.decode(answer.made.tokens).value()},
                              {"tokens", count},
                              {"seconds_s", answer.generation.count()},
                              {"load_s", answer.load.count()},
                              {"first_token_s", answer.first ? Node(answer.first->count()) : Node()},
                              {"start", phases.node()},
                              {"device", program.target.name},
                              {"from", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"out", written.empty() ? Node() : Node(written)},
                              {"end", name_of(answer.made.end)},
                              {"weights", weights.kind}}));
}

ExitCode generate_text(const GenerateCommand& options, Context& context) {
  check(options.generate.sampling).value();
  if (!options.out.empty()) check_writable(options.out).value();
  const Speculation speculation = speculation_for(options.speculate, options.backend).value();
  StartPhases phases(context.clock, process_age());
  phases.end("process");
  Seconds began = context.clock.now();
  const std::unique_ptr<ServingRanks> ranks = start_ranks(options.ranks, options.run, {.backend = options.backend});
  const ServedModel served = find_model_argument(options.run, context);
  const std::optional<ServedModel> draft = find_draft_model(speculation, served).value();
  phases.end("read");
  const WeightsOption weights = options.weights.of(served);
  const Tokenizer& tokenizer = served.tokenizer;
  const Machine machine = machine_for(served, options.backend, context.clock, ranks ? ranks->threads() : 0,
                                      ranks ? ranks->use() : MachineUse{})
                              .value();
  phases.end("device");
  Answer result;
  result.load = context.clock.now() - began;
  Encoder encoder(tokenizer);
  const std::vector<std::vector<std::int32_t>> prompts{served.tokens_of(encoder, text_of(options.prompt))};
  if (!served.step && !served.encodes() && !tokenizer.after().empty()) {
    context.out.notice(fmt::format(
        "the model's tokenizer ends a text with {} that {} left out here, so that it goes on",
        tokenizer.after().size() == 1 ? "a token" : "tokens", tokenizer.after().size() == 1 ? "is" : "are"));
  }
  phases.end("prompt");
  began = context.clock.now();
  // A published model's context is longer than one prompt needs.
  const std::int64_t needed =
      static_cast<std::int64_t>(prompts[0].size()) + std::min(options.generate.max_tokens, served.spec.context());
  EngineOptions asked{
      .cache = served.step ? 0 : needed, .parameter = weights.parameter(), .drafts = speculation.drafts};
  if (ranks) ranks->connect(served, asked, machine).value();
  const std::unique_ptr<Engine> engine = open_engine(served, machine, asked, &phases).value();
  if (ranks) ranks->lead(*engine).value();
  phases.end("weights");
  const std::unique_ptr<ModelDrafts> drafts = open_drafts(draft, machine, *engine, options.weights.parameter()).value();
  if (draft) phases.end("draft");
  result.load += context.clock.now() - began;

  std::optional<WholeFile> out;
  if (!options.out.empty()) out.emplace(options.out, "--out answer.txt");
  GenerateOptions wanted = options.generate;
  wanted.drafts = drafts.get();
  make_answer(served, *engine, wanted, context.clock, prompts, result, phases, [&](std::string_view text) {
    if (out)
      out->append(text);
    else
      context.out.stream(text);
  });
  const bool interrupted = result.made.end == SequenceEnd::asked;
  if (out && !interrupted) out->finish();
  report(weights, served, engine->program(), result, interrupted ? "" : options.out, phases, context);
  return interrupted ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_generate(Subcommand app, Context& context) {
  auto options = std::make_shared<GenerateCommand>();
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
  add_ranks_option(command, options->ranks, false);
  command.add_option("--seed", sampling.seed, "of the draws; the same seed gives the same text").capture_default_str();
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
