// `systole serve [RUN]`: a run's newest checkpoint, a Hugging Face model or a GGUF file, behind OpenAI's HTTP interface.

#include <sys/resource.h>

#include <algorithm>

#include "describe/program/program.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/balance/balancer.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/serve_balanced.h"
#include "operate/cli/speculate_option.h"
#include "operate/cli/weights_option.h"
#include "operate/run/served_model.h"

namespace systole::cli {
namespace {

constexpr Bytes kMostBody = kMiB * 4;  // of a request

struct ServeCommand {
  std::string run, name, backend = "cpu", listen = "127.0.0.1", token_file, certificate, key, chat_template, pooling;
  std::string speculate;
  bool unnormalized = false;
  int port = 8000;
  std::int64_t slots = 4, context = 0, cache_tokens = 0, waiting = 64;
  double grace_s = 30;
  WeightsOption weights;
  std::int64_t threads = 0, replicas = 1;
  bool balanced = false;                            // it is a replica
  std::function<std::vector<std::string>()> given;  // the options of each replica, as words
};

std::string name_of(const ServedModel& served, const std::string& asked) {
  if (!asked.empty()) return asked;
  const std::string path = served.name.substr(0, served.name.find_last_not_of('/') + 1);
  return path.substr(path.rfind('/') + 1);
}

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

// Serves until a signal or a failure of the device; requests in flight then have the grace to end.
void serve_until_stopped(HttpServer& server, ServingThread& serving, Seconds grace, Clock& clock) {
  const SignalWatch watch;
  while (!watch.stop_requested() && !serving.failure()) clock.sleep(Seconds(0.05));
  serving.drain();
  const Seconds until = clock.now() + grace;
  while (!watch.stop_at_once() && clock.now() < until && !server.drain(deadline_after(Seconds(0.05)))) {}
}

ExitCode serve(const ServeCommand& options, Context& context) {
  if (options.replicas > 1) {
    raise_open_files();
    return serve_balanced({.replicas = options.replicas,
                           .threads = options.threads,
                           .backend = options.backend,
                           .run = options.run,
                           .words = options.given(),
                           .server = {.bind = {options.listen, options.port},
                                      .tokens = tokens_in(options.token_file),
                                      .certificate = options.certificate,
                                      .key = options.key,
                                      .limits = {.body = kMostBody}},
                           .grace = Seconds(options.grace_s)},
                          context);
  }
  const std::int64_t drafts = drafts_for(options.speculate, options.backend).value();
  const ServedModel served = find_model(options.run).value();
  const Machine machine = machine_for(served, options.backend, context.clock, options.threads).value();
  const std::vector<std::string> tokens = tokens_in(options.token_file);
  if (served.encodes() && options.cache_tokens > 0) {
    fail(error(ErrorKind::unsupported, "--cache-tokens: a model that encodes its prompt has a cache for each slot")
             .hinted("leave it out; --slots and --context say how large they are"));
  }
  // Without text a model serves nothing but vectors.
  const bool needed = !options.pooling.empty() || served.model->task() == Task::masked;
  const std::optional<PoolingSpec> pooling =
      needed ? pooling_needed(served, options.pooling, !options.unnormalized).value()
             : pooling_for(served, options.pooling, !options.unnormalized).value();
  EngineOptions wanted;
  wanted.slots = options.slots;
  wanted.cache = served.context_for(options.context);
  if (options.cache_tokens > 0 && options.cache_tokens < wanted.cache) {
    fail(error(ErrorKind::invalid, "--cache-tokens: {} for sequences of up to {}", options.cache_tokens,
               counted(wanted.cache, "token"))
             .hinted(fmt::format("--cache-tokens {} or more, or --context {}", wanted.cache, options.cache_tokens)));
  }
  wanted.pages = (options.cache_tokens + kPagePositions - 1) / kPagePositions;
  wanted.parameter = options.weights.parameter();
  wanted.hidden = pooling.has_value();
  wanted.drafts = drafts;
  std::unique_ptr<Engine> engine = open_engine(served, machine, wanted).value();
  std::optional<chat::ChatPrompt> chat;
  if (!options.chat_template.empty()) {
    chat = chat_of(served, read_text_file(options.chat_template).value()).value();
  } else if (Result<std::optional<chat::ChatPrompt>> own = chat_of(served); own.ok()) {
    chat = std::move(*own);
  } else {
    context.out.warning("its chat template cannot be used: " + own.error().message,
                        "give another with --chat-template; without, requests for chat are refused");
  }
  Encoder encoder(served.tokenizer);  // of the routes' thread
  std::optional<ServedVectors> vectors;
  if (pooling)
    vectors = ServedVectors{[&](const std::string& text) { return served.tokens_of_whole(encoder, text); }, *pooling,
                            engine->hidden_size()};
  const ServedApi api{name_of(served, options.name),
                      served.tokenizer,
                      [&](const std::string& text) { return served.tokens_of(encoder, text); },
                      served.never_drawn(engine->vocabulary()),
                      served.encodes(),
                      engine->longest_prompt(),
                      std::move(chat),
                      served.ends,
                      std::move(vectors),
                      engine->generates(),
                      options.balanced ? Balancer::kKeyHeader : ""};
  const MemoryByOwner memory = memory_by_owner(engine->program());
  const Bytes cache = memory[Residence::cache];
  const std::string weights = options.weights.note(engine->program());
  raise_open_files();
  ServingThread serving(std::move(engine), options.waiting);
  const std::unique_ptr<HttpServer> server = HttpServer::start({.bind = {options.listen, options.port},
                                                                .routes = api_routes(api, serving, context.clock),
                                                                .tokens = tokens,
                                                                .certificate = options.certificate,
                                                                .key = options.key,
                                                                .limits = {.body = kMostBody}})
                                                 .value();
  const std::string url =
      fmt::format("{}://{}/v1", options.certificate.empty() ? "http" : "https", to_string(server->address()));
  const std::string texts = fmt::format("{} of {} at once, {} for keys and values", counted(options.slots, "sequence"),
                                        counted(api.context, "token"), to_string(cache));
  const std::string made = !api.vectors
                               ? ""
                               : fmt::format("vectors of {} numbers ({}{})", api.vectors->size,
                                             name_of(pooling->pooling), pooling->normalize ? ", normalized" : "");
  context.out.stream(fmt::format("{} at {}: {}{}{}{}\n", api.model, url, api.generates ? texts : "",
                                 api.generates && api.vectors ? "; " : "", made, weights));
  context.out.json(Node::map({{"model", api.model},
                              {"url", url},
                              {"run", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"dimensions", api.vectors ? Node(api.vectors->size) : Node()},
                              {"slots", options.slots},
                              {"context", api.context},
                              {"cache_bytes", cache.count()},
                              {"weights", options.weights.kind},
                              {"weights_bytes", memory[Residence::parameter].count()}}));
  serve_until_stopped(*server, serving, Seconds(options.grace_s), context.clock);
  if (const std::optional<Error> failure = serving.failure()) fail(*failure);
  const ServingCounts counts = serving.counts();
  context.out.notice(
      fmt::format("served {}, {} and {}{}; {} refused", counted(counts.ended, "answer"),
                  counted(counts.prompt_tokens, "prompt token"), counted(counts.answer_tokens, "new token"),
                  counts.texts == 0 ? "" : fmt::format(", {}", counted(counts.texts, "vector")), counts.refused));
  return ExitCode::done;
}

}  // namespace

void add_serve(Subcommand app, Context& context) {
  auto options = std::make_shared<ServeCommand>();
  Subcommand command =
      add_command(app, "serve", "a run's model over HTTP, as OpenAI's interface has it", options, context, serve);
  command.add_option("run", options->run,
                     "RUN or RUN@STEP: a run's folder, name or number; or the folder of a Hugging Face model, or a "
                     "GGUF file; without: the newest");
  command.add_option("--port", options->port, "0: any free port").capture_default_str();
  command
      .add_option("--listen", options->listen, "address to listen on; one that other machines reach needs --token-file")
      .capture_default_str();
  command.add_option("--name", options->name, "the model's name in requests; without: the name of the run or folder");
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
  command
      .add_option("--context", options->context,
                  "tokens of one sequence; 0: the model's context, of a published model at most 4096")
      .check(at_least(0))
      .capture_default_str();
  command
      .add_option("--cache-tokens", options->cache_tokens,
                  "tokens of all sequences together whose keys and values have memory; 0: for --slots of --context")
      .check(at_least(0))
      .capture_default_str();
  add_weights_option(command, options->weights);
  add_speculate_option(command, options->speculate);
  command.add_option("--waiting", options->waiting, "requests that wait for a slot; one more is refused with 429")
      .check(at_least(0))
      .capture_default_str();
  command.add_option("--token-file", options->token_file,
                     "a file that only you can read, one token a line; requests must show one");
  command.add_option("--certificate", options->certificate, "PEM file, with its chain: serves over TLS");
  command.add_option("--key", options->key, "PEM file of the certificate's key");
  command.add_option("--grace", options->grace_s, "seconds that requests have to end after Ctrl-C or TERM")
      .check(at_least(0))
      .capture_default_str();
  command
      .add_option("--replicas", options->replicas,
                  "processes that serve the model, behind one port; each loads it for itself")
      .check(at_least(1))
      .capture_default_str();
  command
      .add_option(
          "--threads", options->threads,
          "threads that compute on cpu, of each replica; 0: the replicas share the cores; one server has those of the "
          "run, or all")
      .check(at_least(0))
      .capture_default_str();
  command.add_flag("--balanced", options->balanced, "it is a replica behind a balancer").hidden();
  options->given = [command] {
    return command.given({"--port", "--listen", "--token-file", "--certificate", "--key", "--replicas", "--threads"});
  };
  add_device_options(command, options->backend, "cpu, or reference: slow").capture_default_str();
}

}  // namespace systole::cli
