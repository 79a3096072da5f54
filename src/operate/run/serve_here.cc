#include "operate/run/serve_here.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "describe/program/program.h"
#include "describe/spec/serve_spec.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/balance/balancer.h"
#include "ground/base/counted.h"
#include "ground/base/quantity.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "operate/run/lora_option.h"
#include "operate/run/speculation.h"

namespace systole {
namespace {

constexpr Bytes kMostBody = kMiB * 4;                             // of a request
constexpr std::int64_t kMostCacheTokens = std::int64_t{1} << 31;  // their pages and bytes can be counted

// One token a line; blank lines and lines that begin with # are skipped.
Result<std::vector<std::string>> tokens_in(const std::string& path) {
  std::vector<std::string> tokens;
  if (path.empty()) return tokens;
  const std::string text = TRY(read_secret_file(path, Bytes(1 << 16)));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line[0] != '#') tokens.push_back(std::move(line));
    begin = end + 1;
  }
  if (tokens.empty()) return error(ErrorKind::invalid, "no token in '{}'", path).hinted("write one token a line");
  return tokens;
}

Result<ServedModel> model_to_serve(const ServeOptions& options, const RunMessages& messages) {
  ServedModel served =
      options.follow == "blessed" ? TRY(find_blessed(options.run)) : TRY(find_model(options.run, messages));
  if (options.follow.empty()) return served;
  if (served.registered) {
    return error(ErrorKind::unsupported, "--follow: '{}' is one checkpoint, and stays it", options.run)
        .hinted("leave it out, or name the run: 'systole runs' lists those there are");
  }
  if (!served.step) {
    return error(ErrorKind::unsupported, "--follow: '{}' is a published model, which gets no newer checkpoints",
                 served.name)
        .hinted("leave it out, or name a run: 'systole runs' lists those there are");
  }
  return served;
}

std::unique_ptr<CheckpointFollower> follower_of(const ServeOptions& options, const ServedModel& served,
                                                ServingThread& serving, const RunMessages& messages) {
  const std::optional<Followed> which = options.followed();
  if (!which) return nullptr;
  return std::make_unique<CheckpointFollower>(
      served, serving, FollowOptions{*which, messages.warning, [notice = messages.notice](std::int64_t step) {
                                       notice(fmt::format("step {} is served", step));
                                     }});
}

// Serves until a signal or a failure of the device or a rank; requests in flight then have the grace to end.
void serve_until_stopped(HttpServer& server, ServingThread& serving, std::unique_ptr<CheckpointFollower> follower,
                         ServingRanks* ranks, const ServeOptions& options, const SignalWatch& watch, Clock& clock) {
  const auto is_lost = [&] { return ranks != nullptr && ranks->lost().has_value(); };
  if (follower) follower->start(Seconds(options.follow_every_s));
  int looked = 0;
  while (!watch.stop_requested() && !serving.failure() && !is_lost()) {
    clock.sleep(Seconds(0.05));
    if (const int asked = watch.reloads(); asked != looked) {
      looked = asked;
      follower->look_now();
    }
  }
  follower.reset();
  serving.drain();
  // Without a rank every request has failed; the answers only have to be sent.
  const Seconds until = clock.now() + Seconds(is_lost() ? std::min(options.grace_s, 1.0) : options.grace_s);
  while (!watch.stop_at_once() && clock.now() < until && !server.drain(deadline_after(Seconds(0.05)))) {}
}

// How vectors of texts are made; nothing: they are not served. Without text a model serves nothing else.
Result<std::optional<PoolingSpec>> served_pooling(const ServeOptions& options, const ServedModel& served) {
  const bool needed = !options.pooling.empty() || served.model->task() == Task::masked;
  if (!needed) return pooling_for(served, options.pooling, !options.unnormalized);
  return std::optional(TRY(pooling_needed(served, options.pooling, !options.unnormalized)));
}

// What --cache-tokens may be with sequences of so many tokens.
Status check_cache(const ServeOptions& options, const ServedModel& served, std::int64_t context) {
  if (options.cache_tokens == 0) return {};
  if (served.encodes()) {
    return error(ErrorKind::unsupported, "--cache-tokens: a model that encodes its prompt has a cache for each slot")
        .hinted("leave it out; --slots and --context say how large they are");
  }
  if (options.cache_tokens < context) {
    return error(ErrorKind::invalid, "--cache-tokens: {} for sequences of up to {}", options.cache_tokens,
                 counted(context, "token"))
        .hinted(fmt::format("--cache-tokens {} or more, or --context {}", context, options.cache_tokens));
  }
  if (options.cache_tokens > kMostCacheTokens) {
    return error(ErrorKind::invalid, "--cache-tokens: {}, at most {}", options.cache_tokens, kMostCacheTokens)
        .hinted("leave it out: there is memory for --slots of --context then");
  }
  return {};
}

// How long a running answer may wait for its next token while prompts are computed.
Result<Seconds> hold_of(const ServeOptions& options) {
  if (options.tpot.empty()) return kUsualHold;
  const Result<Seconds> hold = parse_seconds(options.tpot);
  if (hold.ok() && *hold > Seconds()) return *hold;
  return error(ErrorKind::invalid, "--tpot: '{}' is no time above 0", options.tpot).hinted("--tpot 100ms");
}

// How prompts are computed beside running answers.
Result<ServingLoopOptions> piece_options(const ServeOptions& options, Clock& clock) {
  if (options.prefill_tokens > 0) return ServingLoopOptions{.prefill_beside = options.prefill_tokens};
  return ServingLoopOptions{.hold = TRY(hold_of(options)), .clock = &clock};
}

Status check_prefill(std::int64_t tokens) {
  if (tokens == 0 || ServeSpec::may_prefill(tokens)) return {};
  return error(ErrorKind::invalid, "--prefill-tokens: {} is no power of two from 16 to 512", tokens)
      .hinted("--prefill-tokens 64, or leave it out: as many as keep a step within --tpot");
}

Result<EngineOptions> engine_options(const ServeOptions& options, const ServedModel& served, std::int64_t drafts,
                                     bool makes_vectors) {
  EngineOptions wanted;
  wanted.slots = options.slots;
  wanted.cache = served.context_for(options.context);
  TRY(check_cache(options, served, wanted.cache));
  wanted.pages = (options.cache_tokens + kPagePositions - 1) / kPagePositions;
  wanted.parameter = options.weights.of(served).parameter();
  wanted.cache_type = *dtype_named(options.cache_type);
  wanted.hidden = makes_vectors;
  wanted.drafts = drafts;
  return wanted;
}

// Nothing: requests for chat are refused.
Result<std::optional<chat::ChatPrompt>> chat_for(const ServeOptions& options, const ServedModel& served,
                                                 const RunMessages& messages) {
  if (!options.chat_template.empty()) return chat_of(served, TRY(read_text_file(options.chat_template)));
  Result<std::optional<chat::ChatPrompt>> own = chat_of(served);
  if (own.ok()) return own;
  messages.warning(error(own.error().kind, "its chat template cannot be used: {}", own.error().message)
                       .hinted("give another with --chat-template; without, requests for chat are refused"));
  return std::optional<chat::ChatPrompt>();
}

}  // namespace

std::optional<Followed> ServeOptions::followed() const {
  if (follow.empty()) return {};
  return follow == "blessed" ? Followed::blessed : Followed::latest;
}

Result<HttpServerOptions> ServeOptions::server() const {
  std::vector<std::string> tokens = TRY(tokens_in(token_file));
  return HttpServerOptions{.bind = {listen, port},
                           .tokens = std::move(tokens),
                           .certificate = certificate,
                           .key = key,
                           .limits = {.body = kMostBody}};
}

Status ServeOptions::check() const {
  TRY(check_prefill(prefill_tokens));
  TRY(hold_of(*this));
  return {};
}

std::string api_url(const NetAddress& address, const HttpServerOptions& server) {
  return fmt::format("{}://{}/v1", server.certificate.empty() ? "http" : "https", to_string(address));
}

Result<ServingCounts> serve_here(
    const ServeOptions& options,
    const std::function<void(const Serving& serving, const std::string& url, const StartPhases& phases)>& ready,
    const RunMessages& messages, Clock& clock) {
  const Speculation speculation = TRY(speculation_for(options.speculate, options.backend));
  StartPhases phases(clock, process_age());
  phases.end("process");
  const Seconds began = clock.now();
  const RankMachine own{options.backend, options.threads};
  const std::unique_ptr<ServingRanks> ranks = TRY(start_ranks(options.ranks, options.run, own, options.lora));
  const ServedModel served = TRY(model_to_serve(options, messages));
  const std::optional<ServedModel> draft = TRY(find_draft_model(speculation, served));
  phases.end("read");
  const Machine machine = TRY(machine_for(served, options.backend, clock, ranks ? ranks->threads() : options.threads,
                                          ranks ? ranks->use() : MachineUse{}));
  phases.end("device");
  HttpServerOptions http = TRY(options.server());
  const std::optional<PoolingSpec> pooling = TRY(served_pooling(options, served));
  const std::string name = options.name.empty() ? served.last_name() : options.name;
  NamedAdapters adapters = TRY(read_adapters(options.lora, served.spec, name));
  if (!adapters.all.empty()) phases.end("adapters");
  EngineOptions wanted = TRY(engine_options(options, served, speculation.drafts, pooling.has_value()));
  wanted.adapters = served_adapters(adapters.all);
  if (ranks) TRY(ranks->connect(served, wanted, machine, ranked_adapters(adapters)));
  std::unique_ptr<Engine> engine = TRY(open_engine(served, machine, wanted, &phases));
  TRY(write_adapters(engine->executor(), adapters.all));
  adapters.all.clear();  // the device has them
  if (ranks) TRY(ranks->lead(*engine, served));
  phases.end("weights");
  const std::unique_ptr<ModelDrafts> drafts = TRY(open_drafts(draft, machine, *engine, options.weights.parameter()));
  if (draft) phases.end("draft");
  const Seconds loaded = clock.now() - began;
  ServedApi api = served_api(served, *engine, name, TRY(chat_for(options, served, messages)), pooling);
  api.adapters = adapters.names;
  if (options.balanced) api.key_header = Balancer::kKeyHeader;
  const std::unique_ptr<AccessRecords> records = TRY(AccessRecords::open(options.access, clock, api, http));
  const Program& program = engine->program();
  std::string note = options.weights.of(served).note(program);
  if (!api.adapters.empty()) note += fmt::format("; adapters: {}", fmt::join(api.adapters, ", "));
  const Serving made{api,
                     served,
                     pooling,
                     memory_by_owner(program),
                     program.target.name,
                     std::move(note),
                     loaded,
                     drafts ? std::optional(drafts->memory()) : std::nullopt};
  raise_open_files();
  ServingLoopOptions steps = TRY(piece_options(options, clock));
  steps.drafts = drafts.get();
  ServingThread serving(std::move(engine), options.waiting, served.step, steps);
  const SignalWatch watch(options.follow.empty() ? Hangup::stop : Hangup::reload);
  http.routes = api_routes(api, serving, clock);
  const std::unique_ptr<HttpServer> server = TRY(HttpServer::start(http));
  phases.end("listen");
  ready(made, api_url(server->address(), http), phases);
  serve_until_stopped(*server, serving, follower_of(options, served, serving, messages), ranks.get(), options, watch,
                      clock);
  std::optional<Error> failure = serving.failure();
  if (ranks && !failure) failure = ranks->lost();
  if (failure) return ranks ? ranks->cause(*failure) : *failure;
  return serving.counts();
}

}  // namespace systole
