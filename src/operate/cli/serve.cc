// `systole serve [RUN]`: a model behind OpenAI's HTTP interface, by one process or by several replicas.

#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>

#include "describe/program/program.h"
#include "describe/spec/serve_spec.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/balance/balancer.h"
#include "execute/weights/lora_adapter.h"
#include "ground/base/counted.h"
#include "ground/base/quantity.h"
#include "ground/base/start_phases.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/access_log_option.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_argument.h"
#include "operate/cli/serve_balanced.h"
#include "operate/cli/speculate_option.h"
#include "operate/cli/weights_option.h"
#include "operate/run/checkpoint_follower.h"
#include "operate/run/speculation.h"

namespace systole::cli {
namespace {

constexpr Bytes kMostBody = kMiB * 4;                             // of a request
constexpr std::int64_t kMostCacheTokens = std::int64_t{1} << 31;  // their pages and bytes can be counted

struct ServeCommand {
  std::string run, name, backend = "cpu", listen = "127.0.0.1", token_file, certificate, key, chat_template, pooling;
  std::string speculate, follow, canary, shadow, tpot, cache_type = "f32";
  std::vector<std::string> lora;  // NAME=PATH
  bool unnormalized = false;
  AccessLogOption access;
  int port = 8000;
  std::int64_t slots = 4, context = 0, cache_tokens = 0, waiting = 64, prefill_tokens = 0;
  double grace_s = 30, follow_every_s = 5;
  WeightsOption weights;
  std::int64_t threads = 0, replicas = 1, canary_weight = 10, shadow_weight = 100;
  bool balanced = false;                            // it is a replica
  std::function<std::vector<std::string>()> given;  // the options of each replica, as words
};

// One token a line; blank lines and lines that begin with # are skipped.
std::vector<std::string> tokens_in(const std::string& path) {
  std::vector<std::string> tokens;
  if (path.empty()) return tokens;
  const std::string text = read_secret_file(path, Bytes(1 << 16)).value();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line[0] != '#') tokens.push_back(std::move(line));
    begin = end + 1;
  }
  if (tokens.empty()) fail(error(ErrorKind::invalid, "no token in '{}'", path).hinted("write one token a line"));
  return tokens;
}

// A connection is an open file, and the usual limit of a shell is 1,024: takes as many as the system allows.
void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

ServedModel model_to_serve(const ServeCommand& options, Context& context) {
  ServedModel served =
      options.follow == "blessed" ? find_blessed(options.run).value() : find_model_argument(options.run, context);
  if (options.follow.empty()) return served;
  if (served.registered) {
    fail(error(ErrorKind::unsupported, "--follow: '{}' is one checkpoint, and stays it", options.run)
             .hinted("leave it out, or name the run: 'systole runs' lists those there are"));
  }
  if (!served.step) {
    fail(error(ErrorKind::unsupported, "--follow: '{}' is a published model, which gets no newer checkpoints",
               served.name)
             .hinted("leave it out, or name a run: 'systole runs' lists those there are"));
  }
  return served;
}

// Nothing: --follow is not given.
std::optional<Followed> followed(const ServeCommand& options) {
  if (options.follow.empty()) return {};
  return options.follow == "blessed" ? Followed::blessed : Followed::latest;
}

std::unique_ptr<CheckpointFollower> follower_of(const ServeCommand& options, const ServedModel& served,
                                                ServingThread& serving, Context& context) {
  const std::optional<Followed> which = followed(options);
  if (!which) return nullptr;
  return std::make_unique<CheckpointFollower>(
      served, serving,
      FollowOptions{*which, [&context](const Error& error) { context.out.warning(error); },
                    [&context](std::int64_t step) { context.out.notice(fmt::format("step {} is served", step)); }});
}

// Serves until a signal or a failure of the device; requests in flight then have the grace to end.
void serve_until_stopped(HttpServer& server, ServingThread& serving, std::unique_ptr<CheckpointFollower> follower,
                         const ServeCommand& options, const SignalWatch& watch, Clock& clock) {
  if (follower) follower->start(Seconds(options.follow_every_s));
  int looked = 0;
  while (!watch.stop_requested() && !serving.failure()) {
    clock.sleep(Seconds(0.05));
    if (const int asked = watch.reloads(); asked != looked) {
      looked = asked;
      follower->look_now();
    }
  }
  follower.reset();
  serving.drain();
  const Seconds until = clock.now() + Seconds(options.grace_s);
  while (!watch.stop_at_once() && clock.now() < until && !server.drain(deadline_after(Seconds(0.05)))) {}
}

HttpServerOptions server_options(const ServeCommand& options) {
  return {.bind = {options.listen, options.port},
          .tokens = tokens_in(options.token_file),
          .certificate = options.certificate,
          .key = options.key,
          .limits = {.body = kMostBody}};
}

ExitCode serve_replicas(const ServeCommand& options, Context& context) {
  check_shared(options.access);
  raise_open_files();
  return serve_balanced({.replicas = options.replicas,
                         .threads = options.threads,
                         .backend = options.backend,
                         .run = options.run,
                         .words = options.given(),
                         .follow = followed(options),
                         .server = server_options(options),
                         .grace = Seconds(options.grace_s),
                         .canary = options.canary,
                         .shadow = options.shadow,
                         .canary_weight = options.canary_weight,
                         .shadow_weight = options.shadow_weight},
                        context);
}

// How vectors of texts are made; nothing: they are not served. Without text a model serves nothing else.
std::optional<PoolingSpec> served_pooling(const ServeCommand& options, const ServedModel& served) {
  const bool needed = !options.pooling.empty() || served.model->task() == Task::masked;
  return needed ? pooling_needed(served, options.pooling, !options.unnormalized).value()
                : pooling_for(served, options.pooling, !options.unnormalized).value();
}

// What --cache-tokens may be with sequences of so many tokens.
void check_cache(const ServeCommand& options, const ServedModel& served, std::int64_t context) {
  if (options.cache_tokens == 0) return;
  if (served.encodes()) {
    fail(error(ErrorKind::unsupported, "--cache-tokens: a model that encodes its prompt has a cache for each slot")
             .hinted("leave it out; --slots and --context say how large they are"));
  }
  if (options.cache_tokens < context) {
    fail(error(ErrorKind::invalid, "--cache-tokens: {} for sequences of up to {}", options.cache_tokens,
               counted(context, "token"))
             .hinted(fmt::format("--cache-tokens {} or more, or --context {}", context, options.cache_tokens)));
  }
  if (options.cache_tokens > kMostCacheTokens) {
    fail(error(ErrorKind::invalid, "--cache-tokens: {}, at most {}", options.cache_tokens, kMostCacheTokens)
             .hinted("leave it out: there is memory for --slots of --context then"));
  }
}

// How long a running answer may wait for its next token while prompts are computed.
Seconds hold_of(const ServeCommand& options) {
  if (options.tpot.empty()) return kUsualHold;
  const Result<Seconds> hold = parse_seconds(options.tpot);
  if (hold.ok() && *hold > Seconds()) return *hold;
  fail(error(ErrorKind::invalid, "--tpot: '{}' is no time above 0", options.tpot).hinted("--tpot 100ms"));
}

// How prompts are computed beside running answers.
ServingLoopOptions piece_options(const ServeCommand& options, Clock& clock) {
  if (options.prefill_tokens > 0) return {.prefill_beside = options.prefill_tokens};
  return {.hold = hold_of(options), .clock = &clock};
}

void check_prefill(std::int64_t tokens) {
  if (tokens == 0 || ServeSpec::may_prefill(tokens)) return;
  fail(error(ErrorKind::invalid, "--prefill-tokens: {} is no power of two from 16 to 512", tokens)
           .hinted("--prefill-tokens 64, or leave it out: as many as keep a step within --tpot"));
}

// The adapters of --lora.
struct Adapters {
  std::vector<std::string> names;
  std::vector<LoraAdapter> all;
};

Adapters adapters_of(const ServeCommand& options, const ServedModel& served, const std::string& model) {
  Adapters adapters;
  for (const std::string& word : options.lora) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      fail(error(ErrorKind::invalid, "--lora: '{}' is not NAME=PATH", word)
               .hinted("--lora NAME=PATH: what requests call it, and its folder in PEFT's format"));
    }
    const std::string name = word.substr(0, equals);
    if (name == model || std::ranges::find(adapters.names, name) != adapters.names.end()) {
      fail(error(ErrorKind::invalid, "--lora: there are two models '{}'", name)
               .hinted("give each adapter a name of its own; --name is that of the model"));
    }
    adapters.all.push_back(read_lora_adapter(word.substr(equals + 1), served.spec).value());
    adapters.names.push_back(name);
  }
  return adapters;
}

EngineOptions engine_options(const ServeCommand& options, const ServedModel& served, std::int64_t drafts,
                             bool makes_vectors) {
  EngineOptions wanted;
  wanted.slots = options.slots;
  wanted.cache = served.context_for(options.context);
  check_cache(options, served, wanted.cache);
  wanted.pages = (options.cache_tokens + kPagePositions - 1) / kPagePositions;
  wanted.parameter = options.weights.of(served).parameter();
  wanted.cache_type = options.cache_type == "bf16" ? DType::bf16 : DType::f32;
  wanted.hidden = makes_vectors;
  wanted.drafts = drafts;
  return wanted;
}

// Nothing: requests for chat are refused.
std::optional<chat::ChatPrompt> chat_for(const ServeCommand& options, const ServedModel& served, Context& context) {
  if (!options.chat_template.empty()) return chat_of(served, read_text_file(options.chat_template).value()).value();
  Result<std::optional<chat::ChatPrompt>> own = chat_of(served);
  if (own.ok()) return std::move(*own);
  context.out.warning("its chat template cannot be used: " + own.error().message,
                      "give another with --chat-template; without, requests for chat are refused");
  return std::nullopt;
}

// What is served, known before the engine goes to its thread.
struct Serving {
  const ServedApi& api;
  const ServedModel& model;
  std::optional<PoolingSpec> pooling;
  MemoryByOwner memory;
  std::string device, weights;
  Seconds loaded;
  std::optional<Bytes> drafts;  // memory of the model that makes them
};

void report_ready(const ServeCommand& options, const Serving& serving, const std::string& url,
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
                                 serving.weights, drafts, to_string(serving.loaded), serving.device));
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

ExitCode serve(const ServeCommand& options, Context& context) {
  check_prefill(options.prefill_tokens);
  hold_of(options);
  if (options.replicas > 1 || !options.canary.empty() || !options.shadow.empty())
    return serve_replicas(options, context);
  const Speculation speculation = speculation_for(options.speculate, options.backend).value();
  StartPhases phases(context.clock, process_age());
  phases.end("process");
  const Seconds began = context.clock.now();
  const ServedModel served = model_to_serve(options, context);
  const std::optional<ServedModel> draft = find_draft_model(speculation, served).value();
  phases.end("read");
  const Machine machine = machine_for(served, options.backend, context.clock, options.threads).value();
  phases.end("device");
  HttpServerOptions http = server_options(options);
  const std::optional<PoolingSpec> pooling = served_pooling(options, served);
  const std::string name = options.name.empty() ? served.last_name() : options.name;
  Adapters adapters = adapters_of(options, served, name);
  if (!adapters.all.empty()) phases.end("adapters");
  EngineOptions wanted = engine_options(options, served, speculation.drafts, pooling.has_value());
  wanted.adapters = served_adapters(adapters.all);
  std::unique_ptr<Engine> engine = open_engine(served, machine, wanted, &phases).value();
  write_adapters(engine->executor(), adapters.all).value();
  adapters.all.clear();  // the device has them
  phases.end("weights");
  const std::unique_ptr<ModelDrafts> drafts = open_drafts(draft, machine, *engine, options.weights.parameter()).value();
  if (draft) phases.end("draft");
  const Seconds loaded = context.clock.now() - began;
  ServedApi api = served_api(served, *engine, name, chat_for(options, served, context), pooling);
  api.adapters = adapters.names;
  if (options.balanced) api.key_header = Balancer::kKeyHeader;
  const AccessRecords records(options.access, context.clock, api, http);
  const Program& program = engine->program();
  std::string weights = options.weights.of(served).note(program);
  if (!api.adapters.empty()) weights += fmt::format("; adapters: {}", fmt::join(api.adapters, ", "));
  const Serving made{api,
                     served,
                     pooling,
                     memory_by_owner(program),
                     program.target.name,
                     std::move(weights),
                     loaded,
                     drafts ? std::optional(drafts->memory()) : std::nullopt};
  raise_open_files();
  ServingLoopOptions steps = piece_options(options, context.clock);
  steps.drafts = drafts.get();
  ServingThread serving(std::move(engine), options.waiting, served.step, steps);
  const SignalWatch watch(options.follow.empty() ? Hangup::stop : Hangup::reload);
  http.routes = api_routes(api, serving, context.clock);
  const std::unique_ptr<HttpServer> server = HttpServer::start(http).value();
  phases.end("listen");
  report_ready(options, made, api_url(server->address(), http), phases, context);
  serve_until_stopped(*server, serving, follower_of(options, served, serving, context), options, watch, context.clock);
  if (const std::optional<Error> failure = serving.failure()) fail(*failure);
  report_end(serving.counts(), context);
  return ExitCode::done;
}

}  // namespace

void add_serve(Subcommand app, Context& context) {
  auto options = std::make_shared<ServeCommand>();
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
  command
      .add_option(
          "--pooling", options->pooling,
          "mean, last or cls: serves vectors of texts, made so of their tokens' states; without: as the model's "
          "1_Pooling/config.json says, if it has one")
      .check(one_of({"mean", "last", "cls"}));
  command.add_flag("--unnormalized", options->unnormalized, "leave vectors as long as they are");
  command.add_option("--slots", options->slots, "sequences at once").check(at_least(1)).capture_default_str();
  add_context_option(command, options->context, "tokens of one sequence");
  command
      .add_option("--cache-tokens", options->cache_tokens,
                  "tokens of all sequences together whose keys and values have memory; 0: for --slots of --context")
      .check(at_least(0))
      .capture_default_str();
  command
      .add_option("--cache-type", options->cache_type,
                  "f32 or bf16: how keys and values are kept; bf16 takes half the memory, and rounds them")
      .check(one_of({"f32", "bf16"}))
      .capture_default_str();
  add_weights_option(command, options->weights);
  command
      .add_option(
          "--lora", options->lora,
          "NAME=PATH: a LoRA adapter of the model, a folder in PEFT's format, which requests choose by this name "
          "as their model; may be repeated")
      .expected(1)
      .take_all();
  add_speculate_option(command, options->speculate);
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
  add_access_log_option(command, options->access);
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
