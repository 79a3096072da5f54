// `systole serve [RUN]`: a model behind OpenAI's HTTP interface, by one process or by several replicas.

#include "ground/base/counted.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_options.h"
#include "operate/cli/run_scene.h"
#include "operate/cli/serve_balanced.h"

namespace systole::cli {
namespace {

void report_ready(const ServeCommandOptions& options, const Serving& serving, const std::string& url,
                  const StartPhases& phases, Context& context) {
  const ServedApi& api = serving.api;
  const Bytes cache = serving.memory[Residence::cache];
  const std::string texts =
      fmt::format("{} of {} at once, {} for keys and values{}", counted(options.slots, "sequence"),
                  counted(api.context, "token"), to_string(cache), options.cache_type == "bf16" ? " in bf16" : "");
  const std::string made =
      !api.vectors ? ""
                   : fmt::format("vectors of {} numbers ({}{})", api.vectors->size, name_of(serving.pooling->pooling),
                                 serving.pooling->normalize ? ", normalized" : "");
  const std::string drafts =
      serving.drafts ? fmt::format("; {} for the model that drafts", to_string(*serving.drafts)) : "";
  context.out.stream(fmt::format("{} at {}: {}{}{}{}{}; loaded in {} on {}\n", api.model, url,
                                 api.generates ? texts : "", api.generates && api.vectors ? "; " : "", made,
                                 serving.note, drafts, to_string(serving.loaded), serving.device));
  context.out.json(Node::map({{"model", api.model},
                              {"url", url},
                              {"device", serving.device},
                              {"load_s", serving.loaded.count()},
                              {"start", phases.node()},
                              {"run", serving.model.name},
                              {"step", serving.model.step ? Node(*serving.model.step) : Node()},
                              {"dimensions", api.vectors ? Node(api.vectors->size) : Node()},
                              {"slots", options.slots},
                              {"context", api.context},
                              {"adapters", Node::sequence(std::vector<Node>(api.adapters.begin(), api.adapters.end()))},
                              {"cache_bytes", cache.count()},
                              {"cache_type", options.cache_type},
                              {"weights", options.weights.of(serving.model).kind},
                              {"weights_bytes", serving.memory[Residence::parameter].count()},
                              {"draft_bytes", serving.drafts ? Node(serving.drafts->count()) : Node()}}));
}

void report_end(const ServingCounts& counts, Context& context) {
  context.out.notice(
      fmt::format("served {}, {} and {}{}; {} refused", counted(counts.ended, "answer"),
                  counted(counts.prompt_tokens, "prompt token"), counted(counts.answer_tokens, "new token"),
                  counts.texts == 0 ? "" : fmt::format(", {}", counted(counts.texts, "vector")), counts.refused));
}

ExitCode serve(const ServeCommandOptions& options, Context& context) {
  options.check().value();
  const RankMachine own{options.backend, options.threads};
  if (options.ranks.rank > 0)
    return static_cast<ExitCode>(serve_as_rank(options.ranks, options.run, options.lora, own, context.clock).value());
  if (options.replicas > 1 || !options.canary.empty() || !options.shadow.empty())
    return serve_balanced(options, context);
  const auto ready = [&](const Serving& serving, const std::string& url, const StartPhases& phases) {
    report_ready(options, serving, url, phases, context);
  };
  report_end(serve_here(options, ready, scene_of(context).messages, context.clock).value(), context);
  return ExitCode::done;
}

}  // namespace

void add_serve(Subcommand app, Context& context) {
  auto options = std::make_shared<ServeCommandOptions>();
  Subcommand command =
      add_command(app, "serve", "a model over HTTP, as OpenAI's interface has it", options, context, serve);
  command.add_option("run", options->run, kModelArgument);
  command.add_option("--port", options->port, "0: any free port").capture_default_str();
  command
      .add_option("--listen", options->listen, "address to listen on; one that other machines reach needs --token-file")
      .capture_default_str();
  command.add_option("--name", options->name,
                     "the model's name in requests; without: its registered name, or that of the run or folder");
  command.add_option("--chat-template", options->chat_template,
                     "a file with a Jinja template; without: the model's own, of tokenizer_config.json or "
                     "chat_template.jinja");
  add_pooling_options(command, options->pooling, options->unnormalized,
                      "serves vectors of texts, made so of their tokens' states", ", if it has one");
  command.add_option("--slots", options->slots, "sequences at once").check(at_least(1)).capture_default_str();
  add_context_option(command, options->context, "tokens of one sequence");
  command
      .add_option("--cache-tokens", options->cache_tokens,
                  "tokens of all sequences together whose keys and values have memory; 0: for --slots of --context")
      .check(at_least(0))
      .capture_default_str();
  add_cache_type_option(command, options->cache_type);
  add_weights_option(command, options->weights);
  command
      .add_option(
          "--lora", options->lora,
          "NAME=PATH: a LoRA adapter of the model, a folder in PEFT's format, which requests choose by this name "
          "as their model; may be repeated")
      .expected(1)
      .take_all();
  add_speculate_option(command, options->speculate);
  add_ranks_option(command, options->ranks, true);
  command
      .add_option("--follow", options->follow,
                  "latest or blessed: changes to newer checkpoints of the run, or to those that `systole ckpt bless` "
                  "marks, as they come; SIGHUP looks for one at once")
      .check(one_of({"latest", "blessed"}))
      .excludes("--lora");
  command.add_option("--follow-every", options->follow_every_s, "seconds between two looks for a newer checkpoint")
      .check(positive())
      .capture_default_str()
      .needs("--follow");
  command
      .add_option("--prefill-tokens", options->prefill_tokens,
                  "tokens of prompts in a step that has tokens of running answers too, a power of two from 16 to 512: "
                  "fewer hold those up for less long, and finish prompts later; 0: as many as keep such a step within "
                  "--tpot, as it is measured")
      .check(at_least(0))
      .capture_default_str();
  command
      .add_option(
          "--tpot", options->tpot,
          "how long a running answer may wait for its next token while prompts are computed, such as 100ms (the "
          "key serve.objective.tpot); without it 50ms")
      .excludes("--prefill-tokens");
  command.add_option("--waiting", options->waiting, "requests that wait for a slot; one more is refused with 429")
      .check(at_least(0))
      .capture_default_str();
  command.add_option("--token-file", options->token_file,
                     "a file that only you can read, one token a line; requests must show one");
  command.add_option("--certificate", options->certificate, "PEM file, with its chain: serves over TLS");
  command.add_option("--key", options->key, "PEM file of the certificate's key");
  command.add_option("--access-log", options->access.path,
                     "a file, or - for stdout: a line of JSON for each request, with the time of each of its parts; "
                     "`systole explain FILE` sums it up. Rename the file to rotate it");
  command.add_flag("--log-prompts", options->access.prompts, "prompts too stand in the access log")
      .needs("--access-log");
  command.add_option("--grace", options->grace_s, "seconds that requests have to end after Ctrl-C or TERM")
      .check(at_least(0))
      .capture_default_str();
  command
      .add_option("--replicas", options->replicas,
                  "processes that serve the model, behind one port; each loads it for itself")
      .check(at_least(1))
      .capture_default_str();
  command.add_option("--canary", options->canary,
                     "another model, as RUN: one process more serves it, behind the same port and under the same name");
  command.add_option("--canary-weight", options->canary_weight, "percent of the requests that the canary answers")
      .check(at_least(1))
      .capture_default_str()
      .needs("--canary");
  command.add_option("--shadow", options->shadow,
                     "another model, as RUN: one process more serves it, gets the requests besides, and its answers "
                     "are only compared with those that were sent");
  command.add_option("--shadow-weight", options->shadow_weight, "percent of the requests that the shadow gets")
      .check(at_least(1))
      .capture_default_str()
      .needs("--shadow");
  command
      .add_option(
          "--threads", options->threads,
          "threads that compute on cpu, of each replica; 0: as many as the run was trained with, or all cores, which "
          "replicas share")
      .check(at_least(0))
      .capture_default_str();
  command.add_flag("--balanced", options->balanced, "it is a replica behind a balancer").hidden();
  options->given = [command] {
    return command.given({"--port", "--listen", "--token-file", "--certificate", "--key", "--replicas", "--threads",
                          "--canary", "--canary-weight", "--shadow", "--shadow-weight"});
  };
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
