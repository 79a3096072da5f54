#include "operate/run/generate_here.h"

#include <unistd.h>

#include <algorithm>

#include "execute/data/tokenizer.h"
#include "ground/base/start_phases.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "ground/store/whole_file.h"
#include "operate/run/speculation.h"

namespace systole {
namespace {

// Generates, and hands each piece of the text to `put`.
Status make_answer(const ServedModel& served, Engine& engine, GenerateOptions wanted, Clock& clock,
                   const std::vector<std::vector<std::int32_t>>& prompts, GeneratedText& result, StartPhases& phases,
                   const std::function<void(std::string_view)>& put) {
  const Tokenizer& tokenizer = served.tokenizer;
  const bool encoded = served.encodes();
  result.prompt = TRY(tokenizer.decode(prompts[0]));  // special tokens decode to nothing
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
  std::vector<Generated> all = TRY(generate(engine, prompts, wanted, take));
  result.made = std::move(all[0]);
  result.generation = clock.now() - began;
  put("\n");
  result.text = TRY(tokenizer.decode(result.made.tokens));
  return {};
}

}  // namespace

Result<GeneratedText> generate_here(const GenerateAsked& asked, const std::function<void(std::string_view)>& put,
                                    const RunMessages& messages, Clock& clock) {
  TRY(check(asked.generate.sampling));
  if (!asked.out.empty()) TRY(check_writable(asked.out));
  const Speculation speculation = TRY(speculation_for(asked.speculate, asked.backend));
  StartPhases phases(clock, process_age());
  phases.end("process");
  Seconds began = clock.now();
  const RankMachine own{.backend = asked.backend};
  const std::unique_ptr<ServingRanks> ranks = TRY(start_ranks(asked.ranks, asked.run, own));
  const ServedModel served = TRY(find_model(asked.run, messages));
  const std::optional<ServedModel> draft = TRY(find_draft_model(speculation, served));
  phases.end("read");
  const WeightsOption weights = asked.weights.of(served);
  const Tokenizer& tokenizer = served.tokenizer;
  const Machine machine =
      TRY(machine_for(served, asked.backend, clock, ranks ? ranks->threads() : 0, ranks ? ranks->use() : MachineUse{}));
  phases.end("device");
  GeneratedText result;
  result.load = clock.now() - began;
  Encoder encoder(tokenizer);
  const std::string prompt = asked.prompt == "-" ? TRY(read_text_from(STDIN_FILENO, "standard input")) : asked.prompt;
  const std::vector<std::vector<std::int32_t>> prompts{served.tokens_of(encoder, prompt)};
  if (!served.step && !served.encodes() && !tokenizer.after().empty()) {
    messages.notice(fmt::format("the model's tokenizer ends a text with {} that {} left out here, so that it goes on",
                                tokenizer.after().size() == 1 ? "a token" : "tokens",
                                tokenizer.after().size() == 1 ? "is" : "are"));
  }
  phases.end("prompt");
  began = clock.now();
  // A published model's context is longer than one prompt needs.
  const std::int64_t needed =
      static_cast<std::int64_t>(prompts[0].size()) + std::min(asked.generate.max_tokens, served.spec.context());
  EngineOptions engine_options{.cache = served.step ? 0 : needed,
                               .parameter = weights.parameter(),
                               .cache_type = *dtype_named(asked.cache_type),
                               .drafts = speculation.drafts};
  if (ranks) TRY(ranks->connect(served, engine_options, machine));
  const std::unique_ptr<Engine> engine = TRY(open_engine(served, machine, engine_options, &phases));
  if (ranks) TRY(ranks->lead(*engine, served));
  phases.end("weights");
  const std::unique_ptr<ModelDrafts> drafts = TRY(open_drafts(draft, machine, *engine, asked.weights.parameter()));
  if (draft) phases.end("draft");
  result.load += clock.now() - began;

  std::optional<WholeFile> out;
  if (!asked.out.empty()) out.emplace(asked.out, "--out answer.txt");
  GenerateOptions wanted = asked.generate;
  wanted.drafts = drafts.get();
  TRY(make_answer(served, *engine, wanted, clock, prompts, result, phases, [&](std::string_view text) {
    if (out)
      out->append(text);
    else
      put(text);
  }));
  result.interrupted = result.made.end == SequenceEnd::asked;
  if (out && !result.interrupted) out->finish();
  result.start = phases.node();
  result.device = engine->program().target.name;
  result.from = served.name;
  result.step = served.step;
  result.weights = weights.kind;
  result.note = weights.note(engine->program());
  return result;
}

}  // namespace systole
