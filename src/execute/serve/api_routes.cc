#include "execute/serve/api_routes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <utility>

#include "execute/serve/completion_job.h"
#include "execute/serve/embedding_route.h"
#include "execute/serve/openai_answers.h"
#include "execute/serve/openai_requests.h"
#include "execute/serve/request_times.h"
#include "execute/serve/task_thread.h"
#include "ground/base/counted.h"

namespace systole {

std::string client_of(const HttpServerRequest& request) {
  const std::string* authorization = request.header("authorization");
  return authorization == nullptr ? request.peer : authorization->substr(authorization->find(' ') + 1);
}

HttpResponse refusal(const Error& error) {
  HttpResponse response{.status = http_status(error), .body = to_json(error_node(error))};
  if (response.status == 429 || response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

namespace {

HttpResponse json(const Node& node) { return {.body = to_json(node)}; }

std::int64_t unix_seconds(Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.calendar().time_since_epoch()).count();
}

// What the balancer says.
std::string key_of(const HttpServerRequest& request, const std::string& key_header) {
  const std::string* said = key_header.empty() ? nullptr : request.header(key_header);
  return said != nullptr ? *said : client_of(request);
}

std::size_t longest_spelling(const Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (std::int32_t token = 0; token < tokenizer.vocabulary(); ++token)
    longest = std::max(longest, tokenizer.bytes_of(token).size());
  return longest;
}

Result<const Node*> required(const Node& request, std::string_view field) {
  if (!request.is_map()) return request.wrong("a JSON object");
  if (const Node* found = request.find(field)) return found;
  return key_error(ErrorKind::invalid, std::string(field), "missing").coded(ErrorCode::missing_key);
}

class Routes {
 public:
  Routes(const ServedApi& api, ServingThread& serving, Clock& clock)
      : api_(api),
        serving_(serving),
        clock_(clock),
        began_(unix_seconds(clock)),
        forms_(api),
        seeds_(std::random_device{}()) {
    if (api.tokenizer.keeps_text())
      most_text_ = static_cast<std::size_t>(api.context) * longest_spelling(api.tokenizer);
  }

  void later(std::function<void()> task) { aside_.post(std::move(task)); }

  void complete(const HttpServerRequest& request, const HttpResponder& responder) {
    begin(request, responder, parse_completion(request.body), "cmpl-");
  }
  void chat(const HttpServerRequest& request, const HttpResponder& responder) {
    begin(request, responder, chat_request(request.body), "chatcmpl-");
  }

  void embed(const HttpServerRequest& request, HttpResponder responder) {
    const auto answer = [&]() -> Status {
      EmbeddingsRequest asked = TRY(parse_embeddings(request.body));
      TRY(check_model(api_, asked.model));
      if (adapter_of(api_, asked.model) > 0) {
        return key_error(ErrorKind::unsupported, "model", "'{}' is an adapter, and vectors are made without",
                         asked.model)
            .hinted(fmt::format("ask '{}' for vectors", api_.model));
      }
      return answer_embeddings(api_, serving_, std::move(asked), responder, aside_.poster());
    };
    if (const Status answered = answer(); !answered.ok()) responder.send(refusal(answered.error()));
  }

  Result<Node> model(const std::string& name) const {
    TRY(check_model(api_, name));
    return model_node(name);
  }
  Node models() const {
    std::vector<Node> nodes{model_node(api_.model)};
    for (const std::string& adapter : api_.adapters) nodes.push_back(model_node(adapter));
    return Node::map({{"object", "list"}, {"data", Node::sequence(std::move(nodes))}});
  }

  // A node per token would be 100 bytes for each byte of the text.
  Result<HttpResponse> tokenize(const std::string& body) const {
    const Node request = TRY(parse_json(body, "request"));
    const std::string text = TRY(TRY(required(request, "prompt"))->as_string());
    const std::vector<std::int32_t> tokens = api_.tokens_of(text);
    return HttpResponse{.body = fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", tokens.size(),
                                            api_.context, fmt::join(tokens, ","))};
  }
  Result<Node> detokenize(const std::string& body) const {
    const Node request = TRY(parse_json(body, "request"));
    const Node& listed = *TRY(required(request, "tokens"));
    if (!listed.is_sequence()) return listed.wrong("a list of tokens");
    // A token may spell a hundred bytes and more.
    if (static_cast<std::int64_t>(listed.items().size()) > api_.context)
      return key_error(ErrorKind::invalid, "tokens", "{} tokens, a sequence has at most {}", listed.items().size(),
                       api_.context);
    std::vector<std::int32_t> tokens;
    for (const Node& token : listed.items())
      tokens.push_back(static_cast<std::int32_t>(TRY(token.as_int(0, INT32_MAX))));
    return Node::map({{"prompt", TRY(api_.tokenizer.decode(tokens))}});
  }

  HttpResponse ready() const {
    const ServingCounts counts = serving_.counts();
    if (!counts.failed && !counts.draining) return json(Node::map({{"status", "ready"}}));
    return {.status = 503, .body = to_json(Node::map({{"status", counts.failed ? "failed" : "draining"}}))};
  }
  HttpResponse metrics() const {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .body = metrics_text(serving_.counts(), api_.model) + (api_.metrics ? api_.metrics() : "")};
  }

 private:
  Status check(const CompletionRequest& asked) const {
    TRY(check_model(api_, asked.model));
    if (!api_.generates)
      return error(ErrorKind::unsupported, "the model '{}' has vectors of texts, and writes none", api_.model)
          .hinted("ask /v1/embeddings");
    for (const CompletionRequest::Prompt& prompt : asked.prompts) {
      const auto* text = std::get_if<std::string>(&prompt);
      if (text != nullptr && text->size() > most_text_)
        return error(ErrorKind::invalid, "a prompt of {} bytes for a context of {}", text->size(),
                     counted(api_.context, "token"))
            .coded(ErrorCode::context_length_exceeded);
    }
    return {};
  }

  // With the conversation's tokens as its prompt.
  Result<CompletionRequest> chat_request(const std::string& body) const {
    CompletionRequest request = TRY(parse_chat(body));
    TRY(check_model(api_, request.model));
    TRY(add_chat_prompt(api_, unix_seconds(clock_), request));
    return request;
  }

  void begin(const HttpServerRequest& request, HttpResponder responder, Result<CompletionRequest> asked,
             const std::string& prefix) {
    const Status checked = asked.ok() ? check(*asked) : Status(asked.error());
    if (!checked.ok()) return responder.send(refusal(checked.error()));
    Result<CompletionForm> form = forms_.form_of(*asked);
    if (!form.ok()) return responder.send(refusal(form.error()));
    form->call_ids = seeds_();
    if (!asked->seeded) asked->sampling.seed = seeds_();
    CompletionHead head{prefix + request.id, unix_seconds(clock_), asked->model};
    const Status begun = answer_completion(api_, serving_, std::move(*asked), std::move(head), std::move(*form),
                                           key_of(request, api_.key_header), responder);
    if (!begun.ok()) responder.send(refusal(begun.error()));
  }

  // Of the model, or of an adapter.
  Node model_node(const std::string& name) const {
    Node node = Node::map({{"id", name},
                           {"object", "model"},
                           {"created", began_},
                           {"owned_by", "systole"},
                           {"max_model_len", api_.context}});
    if (const std::optional<std::int64_t> step = serving_.counts().step) node.set("step", *step);
    if (name != api_.model) node.set("parent", api_.model);
    return node;
  }

  const ServedApi& api_;
  ServingThread& serving_;
  Clock& clock_;
  std::int64_t began_;
  // A longer text has more tokens than a sequence, and need not be encoded to know it.
  std::size_t most_text_ = std::numeric_limits<std::size_t>::max();
  CompletionForms forms_;  // of aside_'s thread, as the next
  std::mt19937_64 seeds_;
  TaskThread aside_;  // last: its tasks use the others
};

HttpResponse answer(const Result<Node>& node) { return node.ok() ? json(*node) : refusal(node.error()); }

}  // namespace

std::string metrics_text(const ServingCounts& counts, const std::string& model) {
  std::string text;
  const auto metric = [&](const char* name, const char* type, const char* help, auto value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{model_name={3}}} {4}\n", name, help, type,
                        to_json(Node(model)), value);
  };
  metric("vllm:num_requests_running", "gauge", "Sequences in the batch.", counts.running);
  metric("vllm:num_requests_waiting", "gauge", "Sequences that wait for a slot.", counts.waiting);
  metric("vllm:prompt_tokens_total", "counter", "Tokens of prompts.", counts.prompt_tokens);
  metric("vllm:prefix_cache_queries_total", "counter", "Tokens of prompts.", counts.prompt_tokens);
  metric("vllm:prefix_cache_hits_total", "counter", "Tokens of prompts whose keys and values were there.",
         counts.cached_tokens);
  metric("vllm:kv_cache_usage_perc", "gauge", "Share of the cache that sequences use, 0 to 1.", counts.pages_used);
  metric("systole:prefill_piece_tokens", "gauge", "Tokens of prompts that a step beside running answers could have.",
         counts.prefill_beside);
  metric("vllm:num_preemptions_total", "counter", "Sequences that gave way and were computed again.",
         counts.preemptions);
  metric("vllm:generation_tokens_total", "counter", "Tokens of answers.", counts.answer_tokens);
  metric("vllm:spec_decode_num_draft_tokens_total", "counter", "Guesses of tokens of answers.", counts.draft_tokens);
  metric("vllm:spec_decode_num_accepted_tokens_total", "counter", "Guesses that were right.", counts.accepted_tokens);
  metric("vllm:request_success_total", "counter", "Sequences that came to their end.", counts.ended);
  metric("systole:embedded_total", "counter", "Texts whose vectors were computed.", counts.texts);
  metric("systole:cancelled_total", "counter", "Sequences whose client left or wanted no more.", counts.cancelled);
  metric("systole:refused_total", "counter", "Sequences that were refused.", counts.refused);
  if (!counts.step) return text;
  metric("systole:checkpoint_step", "gauge", "Step of the checkpoint that is served.", *counts.step);
  metric("systole:checkpoint_reloads_total", "counter", "Changes to another checkpoint.", counts.reloads);
  metric("systole:checkpoint_failed_reloads_total", "counter", "Checkpoints that were not taken, as damaged ones.",
         counts.failed_reloads);
  return text;
}

std::vector<HttpRoute> api_routes(const ServedApi& api, ServingThread& serving, Clock& clock) {
  const auto routes = std::make_shared<Routes>(api, serving, clock);
  const auto route = [](const char* method, const char* pattern, auto reply, bool needs_token = true) {
    return HttpRoute{
        method, pattern,
        [reply](const HttpServerRequest& request, HttpResponder responder) { responder.send(reply(request)); },
        needs_token};
  };
  // To read and encode a request of megabytes takes long: not on the thread that carries all connections.
  const auto aside = [routes](const char* pattern, auto handle) {
    return HttpRoute{"POST", pattern, [routes, handle](HttpServerRequest request, const HttpResponder& responder) {
                       responder.record().enter(kTurn);
                       routes->later([handle, all = routes.get(), request = std::move(request), responder] {
                         responder.record().enter(kEncode);
                         if (!responder.is_gone()) handle(*all, request, responder);
                       });
                     }};
  };
  using Request = const HttpServerRequest&;
  return {
      aside("/v1/completions",
            [](Routes& all, Request request, const HttpResponder& responder) { all.complete(request, responder); }),
      aside("/v1/chat/completions",
            [](Routes& all, Request request, const HttpResponder& responder) { all.chat(request, responder); }),
      aside("/v1/embeddings",
            [](Routes& all, Request request, const HttpResponder& responder) { all.embed(request, responder); }),
      route("GET", "/v1/models", [routes](Request) { return json(routes->models()); }),
      route("GET", "/v1/models/{model*}",
            [routes](Request request) { return answer(routes->model(request.parameter("model"))); }),
      aside("/tokenize",
            [](Routes& all, Request request, HttpResponder responder) {
              const Result<HttpResponse> tokens = all.tokenize(request.body);
              responder.send(tokens.ok() ? *tokens : refusal(tokens.error()));
            }),
      aside("/detokenize", [](Routes& all, Request request,
                              HttpResponder responder) { responder.send(answer(all.detokenize(request.body))); }),
      route(
          "GET", "/health/live",
          [](Request) {
            return json(Node::map({{"status", "live"}}));
          },
          false),
      route(
          "GET", "/health/ready", [routes](Request) { return routes->ready(); }, false),
      route("GET", "/metrics", [routes](Request) { return routes->metrics(); }),
  };
}

}  // namespace systole
