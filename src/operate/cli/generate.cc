// `systole generate [RUN]`: text out of a run's newest checkpoint. The text streams to stdout as it comes.

#include <iostream>
#include <iterator>

#include "describe/models/list.h"
#include "execute/data/tokenizer.h"
#include "execute/serve/generate.h"
#include "execute/train/state.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/run_places.h"
#include "operate/cli/run_tokenizer.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {
namespace {

struct GenerateCommand {
  std::string run, prompt, backend = "cpu";
  GenerateOptions generate;
};

// Tokens that stand for no text, but for eos: unk, bos and other marks, and rows of the embedding that are padding.
std::vector<std::int32_t> never_drawn(const Tokenizer& tokenizer, std::int64_t vocabulary) {
  std::vector<std::int32_t> never;
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (tokenizer.bytes_of(id).empty() && id != tokenizer.eos()) never.push_back(id);
  }
  for (std::int64_t id = tokenizer.vocabulary(); id < vocabulary; ++id) never.push_back(static_cast<std::int32_t>(id));
  return never;
}

std::vector<std::int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& prompt) {
  std::string text = prompt;
  if (prompt == "-") text.assign(std::istreambuf_iterator<char>(std::cin), {});
  std::vector<std::int32_t> tokens{tokenizer.bos()};
  Encoder(tokenizer).encode(text, tokens);
  return tokens;
}

ExitCode generate_text(const GenerateCommand& options, Context& context) {
  GenerateOptions wanted = options.generate;
  check(wanted.sampling).value();
  const CheckpointPlace place = find_checkpoints(options.run).value();
  const RunPlace run = open_run(options.run.substr(0, options.run.rfind('@'))).value();
  const Workload workload = workload_of(run).value();
  const Tokenizer tokenizer = kept_tokenizer(run).value();
  const checkpoint::Checkpoint from = open_checkpoint(place).value();
  const Machine machine = open_machine(options.backend, workload.resources, context.clock).value();
  const std::unique_ptr<const Model> model = make_model(workload.model);
  EngineOptions engine_options;
  engine_options.parameter = workload.train.precision.parameter;
  const std::unique_ptr<Engine> engine = Engine::create(*model, *machine.device, engine_options).value();
  load_parameters(engine->executor(), from).value();

  const std::vector<std::vector<std::int32_t>> prompts{tokens_of(tokenizer, options.prompt)};
  const std::string prompt = tokenizer.decode(std::span(prompts[0]).subspan(1)).value();
  wanted.stop = {tokenizer.eos()};
  wanted.sampling.never = never_drawn(tokenizer, engine->vocabulary());
  const SignalWatch watch;
  context.out.stream(prompt);
  const Seconds began = context.clock.now();
  const std::vector<Generated> made = generate(*engine, prompts, wanted, [&](std::size_t, std::int32_t token) {
                                        context.out.stream(tokenizer.bytes_of(token));
                                        return !watch.stop_requested();
                                      }).value();
  const Seconds took = context.clock.now() - began;
  const auto count = static_cast<std::int64_t>(made[0].tokens.size());
  context.out.stream("\n");
  context.out.message(fmt::format("{} tokens in {}, from step {}; ended by {}", count, to_string(took),
                                  from.manifest().step, name_of(made[0].end)));
  context.out.json(Node::map({{"prompt", prompt},
                              {"text", tokenizer.decode(made[0].tokens).value()},
                              {"tokens", count},
                              {"seconds_s", took.count()},
                              {"step", from.manifest().step},
                              {"end", name_of(made[0].end)}}));
  return made[0].end == Generated::End::asked ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_generate(CLI::App& app, Context& context) {
  auto options = std::make_shared<GenerateCommand>();
  CLI::App& command =
      add_command(app, "generate", "text out of a run's newest checkpoint", options, context, generate_text);
  SamplingOptions& sampling = options->generate.sampling;
  command.add_option("run", options->run, "RUN or RUN@STEP: a run's folder, name or number; without: the newest");
  command.add_option("--prompt", options->prompt, "text to go on from; - is standard input");
  command.add_option("--tokens", options->generate.max_tokens, "new tokens, at most")
      ->check(at_least(1))
      ->capture_default_str();
  command
      .add_option("--min-tokens", options->generate.min_tokens,
                  "so many come before the end of a document may be drawn")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--temperature", sampling.temperature, "0: always the likeliest; 1: as the model says")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "draw from the K likeliest; 0: from all")->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "draw from the fewest that have this probability together")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "of the draws; the same seed gives the same text")->capture_default_str();
  command.add_option("--backend", options->backend, "cpu, or reference: slow")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
}

}  // namespace systole::cli
