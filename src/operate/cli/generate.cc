// `systole generate [RUN]`: text out of a run's newest checkpoint, or of a Hugging Face model. The text streams to
// stdout as it comes: what goes on from the prompt, after it, or the answer of a model that encodes the prompt, alone.

#include <unistd.h>

#include <algorithm>
#include <span>

#include "describe/models/list.h"
#include "execute/data/tokenizer.h"
#include "execute/serve/generate.h"
#include "execute/train/state.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/hf_folder.h"
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

// As the model's rows have them: a document begins with `before`, the input of a pair ends with eos.
std::vector<std::int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& prompt,
                                    std::span<const std::int32_t> before, bool encoded) {
  std::string text = prompt;
  if (prompt == "-") text = read_text_from(STDIN_FILENO, "standard input").value();
  std::vector<std::int32_t> tokens;
  if (!encoded) tokens.assign(before.begin(), before.end());
  if (!encoded && tokens.empty() && text.empty()) tokens.push_back(tokenizer.bos());
  Encoder(tokenizer).encode(text, tokens);
  if (encoded) tokens.push_back(tokenizer.eos());
  return tokens;
}

// Where a model comes from: a run's checkpoint, or the folder of a Hugging Face model.
struct Origin {
  ModelSpec model;
  ResourcesSpec resources;
  DType parameter = DType::f32;
  Tokenizer tokenizer;
  std::vector<std::int32_t> before;  // a text
  std::optional<std::int64_t> step;
  std::string name;  // for people: the run, or the folder
  std::function<Status(Executor&)> load;
};

Origin origin_of_run(const std::string& asked) {
  const auto place = std::make_shared<CheckpointPlace>(find_checkpoints(asked).value());
  const RunPlace run = open_run(read_asked_checkpoint(asked).run).value();
  const Workload workload = workload_of(run).value();
  Tokenizer tokenizer = kept_tokenizer(run).value();
  const std::int32_t bos = tokenizer.bos();
  const checkpoint::Checkpoint from = open_checkpoint(*place).value();
  return {workload.model,
          workload.resources,
          workload.train.precision.parameter,
          std::move(tokenizer),
          {bos},
          from.manifest().step,
          run.path,
          [place, from](Executor& executor) { return load_parameters(executor, from); }};
}

Origin origin_of_folder(const std::string& path) {
  const Workload workload = workload_around(path).value();
  const auto folder = std::make_shared<HfFolder>(open_hf_folder(path, workload.model).value());
  Tokenizer tokenizer = tokenizer_of(*folder, workload.model).value();
  if (tokenizer.vocabulary() > workload.model.vocabulary) {
    fail(error(ErrorKind::invalid, "the tokenizer in '{}' has {}, its model {}", path,
               counted(tokenizer.vocabulary(), "token"), workload.model.vocabulary)
             .hinted("put the tokenizer there that the model was trained with"));
  }
  std::vector<std::int32_t> before(tokenizer.before().begin(), tokenizer.before().end());
  return {workload.model,
          workload.resources,
          DType::f32,
          std::move(tokenizer),
          std::move(before),
          std::nullopt,
          path,
          [folder](Executor& executor) { return load_weights(executor, *folder); }};
}

const char* words_of(Generated::End end) {
  switch (end) {
    case Generated::End::stop: return "at the end of the document";
    case Generated::End::max_tokens: return "with as many tokens as were asked for";
    case Generated::End::cache_full: return "where the model's context is full";
    case Generated::End::asked: return "by a signal";
  }
  return "";
}

ExitCode generate_text(const GenerateCommand& options, Context& context) {
  GenerateOptions wanted = options.generate;
  check(wanted.sampling).value();
  const Origin origin = is_hf_folder(options.run) ? origin_of_folder(options.run) : origin_of_run(options.run);
  const Tokenizer& tokenizer = origin.tokenizer;
  // The run may have been trained on more cores than there are here.
  ResourcesSpec resources = origin.resources;
  if (resources.threads) resources.threads = std::min<std::int64_t>(*resources.threads, allowed_cores());
  const Machine machine = open_machine(options.backend, resources, context.clock).value();
  const std::unique_ptr<const Model> model = make_model(origin.model);
  const bool encoded = model->task() == Task::pairs;
  const std::vector<std::vector<std::int32_t>> prompts{tokens_of(tokenizer, options.prompt, origin.before, encoded)};
  if (!origin.step && !encoded && !tokenizer.after().empty()) {
    context.out.notice(fmt::format(
        "the model's tokenizer ends a text with {} that {} left out here, so that it goes on",
        tokenizer.after().size() == 1 ? "a token" : "tokens", tokenizer.after().size() == 1 ? "is" : "are"));
  }
  EngineOptions engine_options;
  engine_options.parameter = origin.parameter;
  // A published model's context is made for more than one prompt.
  const auto length = static_cast<std::int64_t>(prompts[0].size());
  if (!origin.step) engine_options.cache = std::min(origin.model.context, length + wanted.max_tokens);
  const std::unique_ptr<Engine> engine = Engine::create(*model, *machine.device, engine_options).value();
  origin.load(engine->executor()).value();

  const std::string prompt = tokenizer.decode(prompts[0]).value();  // marks spell nothing
  wanted.stop = {tokenizer.eos()};
  wanted.sampling.never = never_drawn(tokenizer, engine->vocabulary());
  const SignalWatch watch;
  if (!encoded) context.out.stream(prompt);
  const Seconds began = context.clock.now();
  bool blank = encoded && tokenizer.begins_with_space();  // so far: an answer does not begin with spaces then
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
  context.out.notice(fmt::format("{} in {}, from {}; ended {}", counted(count, "token"), to_string(took),
                                 origin.step ? fmt::format("step {} of {}", *origin.step, origin.name) : origin.name,
                                 words_of(made[0].end)));
  context.out.json(Node::map({{"prompt", prompt},
                              {"prompt_tokens", length},
                              {"text", tokenizer.decode(made[0].tokens).value()},
                              {"tokens", count},
                              {"seconds_s", took.count()},
                              {"from", origin.name},
                              {"step", origin.step ? Node(*origin.step) : Node()},
                              {"end", name_of(made[0].end)}}));
  return made[0].end == Generated::End::asked ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_generate(Subcommand app, Context& context) {
  auto options = std::make_shared<GenerateCommand>();
  Subcommand command =
      add_command(app, "generate", "text out of a run's newest checkpoint", options, context, generate_text);
  SamplingOptions& sampling = options->generate.sampling;
  command.add_option("run", options->run,
                     "RUN or RUN@STEP: a run's folder, name or number; or the folder of a Hugging Face model; "
                     "without: the newest");
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
  command.add_option("--seed", sampling.seed, "of the draws; the same seed gives the same text").capture_default_str();
  Option backend = command.add_option("--backend", options->backend, "cpu, or reference: slow")
                       .check(one_of({"cpu", "reference"}))
                       .capture_default_str();
  command.add_option("--device", options->backend, "gpu or tpu: through its vendor's XLA; xla-cpu: XLA on this machine")
      .check(one_of({"cpu", "gpu", "tpu", "xla-cpu"}))
      .excludes(backend);
}

}  // namespace systole::cli
