// The routes over a real connection and a tiny engine: what happens when something is full, slow, broken or ending.
#include "execute/serve/api_routes.h"

#include <gtest/gtest.h>

#include <future>

#include "execute/data/testing/made_up_text.h"
#include "execute/serve/testing/tiny_engine.h"
#include "ground/base/document.h"
#include "ground/net/testing/http_wire.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

// True once `holds` does; false: not within 20 s.
bool comes_true(const std::function<bool()>& holds) {
  for (const auto until = steady_clock::now() + std::chrono::seconds(20); steady_clock::now() < until;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return holds();
}

const Tokenizer& tokenizer() {
  static const Tokenizer made = Tokenizer::train({.vocabulary = 400}, made_up_documents(500)).value();
  return made;
}

// All but those that spell whole characters, so that each token is text at once and no sequence ends by itself.
std::vector<std::int32_t> not_plain() {
  std::vector<std::int32_t> tokens;
  for (std::int32_t token = 0; token < tokenizer().vocabulary(); ++token) {
    const std::string_view bytes = tokenizer().bytes_of(token);
    if (bytes.empty() || std::ranges::any_of(bytes, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
      tokens.push_back(token);
  }
  return tokens;
}

// Stops the engine at each token of one sequence until it may go on.
class Brake {
 public:
  bool at_token() {
    std::unique_lock lock(mutex_);
    ++reached_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return reached_ <= passed_; });
    return true;
  }
  bool holds(int token) {  // the first is 1
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return reached_ == token; });
  }
  void pass(int token) {
    const std::lock_guard lock(mutex_);
    passed_ = token;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int reached_ = 0, passed_ = 0;
};

class ApiRoutes : public testing::Test {
 protected:
  struct Setup {
    std::int64_t slots = 1, waiting = 8, context = 64;
    std::string model = "m";
    HttpServerLimits limits = {};
    bool spoiled = false;
    std::function<void()> encoding = [] {};
    std::string chat_template = {};
    std::optional<std::int64_t> step = {};
  };
  void start(const Setup& setup) {
    model_ = make_decoder(tiny_decoder(tokenizer().vocabulary(), setup.context));
    std::unique_ptr<Engine> engine = sharp_engine(*model_, *device_, {.slots = setup.slots});
    if (setup.spoiled) spoil_weights(*model_, *engine);
    api_ = std::make_unique<ServedApi>(ServedApi{.model = setup.model,
                                                 .tokenizer = tokenizer(),
                                                 .tokens_of =
                                                     [encoding = setup.encoding](const std::string& text) {
                                                       encoding();
                                                       std::vector<std::int32_t> tokens;
                                                       Encoder(tokenizer()).encode(text, tokens);
                                                       return tokens;
                                                     },
                                                 .never = not_plain(),
                                                 .context = engine->longest_prompt()});
    if (!setup.chat_template.empty())
      api_->chat.emplace(chat::ChatTemplate::parse(setup.chat_template).value(), tokenizer(), "", "");
    serving_ = std::make_unique<ServingThread>(std::move(engine), setup.waiting, setup.step);
    std::vector<HttpRoute> routes = api_routes(*api_, *serving_, clock_);
    routes.push_back({"GET", "/stands", [this](const HttpServerRequest&, HttpResponder to) {
                        stands_.set_value();
                        may_go_.get_future().wait_for(std::chrono::seconds(20));
                        to.send({});
                      }});
    server_ = HttpServer::start({.routes = std::move(routes),
                                 .limits = setup.limits,
                                 .access =
                                     [this](const HttpAccess& access) {
                                       const std::lock_guard lock(mutex_);
                                       answered_.push_back(access.id);
                                     }})
                  .value();
  }
  HttpWire wire() const { return HttpWire(server_->address()); }
  std::string completion(const std::string& more = "") const {
    const std::string body = fmt::format(R"({{"model": "{}", "prompt": "ba", "temperature": 0{}}})", api_->model, more);
    return fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: r\r\nContent-Length: {}\r\n\r\n{}",
                       body.size(), body);
  }
  HttpWire ask(const std::string& request) const {
    HttpWire asks = wire();
    asks.say(request);
    return asks;
  }
  // Asks what the engine, which stands, will get as that many sequences.
  HttpWire queue(const std::string& request, std::int64_t sequences = 1) const {
    const std::int64_t before = serving_->counts().waiting;
    HttpWire asks = ask(request);
    EXPECT_TRUE(comes_true([&] { return serving_->counts().waiting == before + sequences; }));
    return asks;
  }
  std::string get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").answer();
  }
  std::string post(const std::string& path, std::string_view body) const {
    return ask(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body))
        .answer();
  }
  static std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }
  // Runs a sequence that stands at its first token.
  std::shared_ptr<Brake> brake(std::int64_t tokens = 2) {
    const auto brake = std::make_shared<Brake>();
    serving_->submit({.prompt = {5}, .sampling = {.never = not_plain()}, .max_tokens = tokens},
                     {[brake](std::int32_t) { return brake->at_token(); }, [](SequenceEnd) {}, [](const Error&) {}});
    EXPECT_TRUE(brake->holds(1));
    return brake;
  }

  FakeClock clock_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Device> device_ = make_reference_device();
  std::unique_ptr<ServedApi> api_;
  std::promise<void> stands_, may_go_;
  std::mutex mutex_;
  std::vector<std::string> answered_;  // ids of requests; guarded by mutex_
  std::unique_ptr<ServingThread> serving_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ApiRoutes, a_full_queue_refuses_for_now_and_what_never_fits_for_good) {
  start({.waiting = 1});
  const auto engine = brake();
  HttpWire waits = queue(completion(R"(, "max_tokens": 2)")), refused = queue(completion());
  engine->pass(2);
  const std::string answer = refused.answer();
  EXPECT_EQ(status_of(answer), 429) << answer;
  EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos) << answer;
  EXPECT_EQ(status_of(waits.answer()), 200);
  const std::string never = ask(completion(R"(, "n": 3)")).answer();
  EXPECT_EQ(status_of(never), 400) << never;
  EXPECT_NE(never.find(R"("param":"n")"), never.npos) << never;
}

TEST_F(ApiRoutes, answers_of_a_refused_request_are_not_computed) {
  start({.waiting = 1});
  const auto engine = brake();
  HttpWire refused = queue(completion(R"(, "n": 2)"), 2);
  engine->pass(2);
  EXPECT_EQ(status_of(refused.answer()), 429) << "one fits and the other does not";
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_EQ(serving_->counts().answer_tokens, 2) << "those of the sequence that ran";
}

TEST_F(ApiRoutes, who_leaves_the_queue_is_not_answered) {
  start({});
  const auto engine = brake();
  HttpWire leaves = queue(completion(R"(, "stream": true)"));
  leaves.hang_up();
  EXPECT_TRUE(comes_true([&] { return server_->connections() == 0; }));
  engine->pass(2);
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_LE(serving_->counts().answer_tokens, 3) << "16 are asked for";
}

TEST_F(ApiRoutes, a_slow_reader_is_cut_and_its_slot_is_free) {
  // 24 MB of events, and room for some forty before the first must have gone.
  start({.context = 256, .model = std::string(96 << 10, 'm'), .limits = {.stream_buffer = kMiB * 4}});
  HttpWire reader = ask(completion(R"(, "max_tokens": 250, "stream": true)"));  // each event has the model's name
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_LT(serving_->counts().answer_tokens, 250);
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 2)")).answer()), 200);
  const std::string got = reader.rest();
  EXPECT_EQ(status_of(got), 200);
  EXPECT_EQ(got.find("[DONE]"), got.npos);
  EXPECT_FALSE(got.ends_with("\r\n0\r\n\r\n")) << "it is not whole";
}

TEST_F(ApiRoutes, a_stream_without_room_for_its_last_event_is_not_whole) {
  const std::string request = R"(, "max_tokens": 1, "stream": true)";
  start({});
  const std::string whole = body_of(ask(completion(request)).answer());
  ASSERT_TRUE(whole.ends_with("data: [DONE]\n\n")) << whole;
  server_.reset();
  start({.limits = {.stream_buffer = Bytes(static_cast<std::int64_t>(whole.size()) - 1)}});
  const auto engine = brake();
  HttpWire reader = queue(completion(request));
  HttpWire stops = ask("GET /stands HTTP/1.1\r\nHost: x\r\n\r\n");  // nothing leaves meanwhile
  ASSERT_EQ(stands_.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  std::promise<void> last;
  serving_->submit({.priority = -1, .prompt = {5}, .max_tokens = 1},
                   {[](std::int32_t) { return true; }, [&](SequenceEnd) { last.set_value(); }, [](const Error&) {}});
  engine->pass(2);
  EXPECT_EQ(last.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  may_go_.set_value();
  const std::string got = reader.rest();
  EXPECT_EQ(got.find("[DONE]"), got.npos) << got;
  EXPECT_FALSE(got.ends_with("\r\n0\r\n\r\n")) << got;
}

TEST_F(ApiRoutes, draining_refuses_what_comes_and_lets_end_what_runs) {
  start({.slots = 2});
  const auto engine = brake(3);
  HttpWire runs = queue(completion(R"(, "max_tokens": 3)"));
  engine->pass(1);
  ASSERT_TRUE(engine->holds(2)) << "in the step that began the other";
  serving_->drain();
  EXPECT_EQ(status_of(get("/health/ready")), 503);
  EXPECT_EQ(status_of(get("/health/live")), 200);
  HttpWire late = queue(completion());
  engine->pass(3);
  const std::string refused = late.answer(), answer = runs.answer();
  EXPECT_EQ(status_of(refused), 503) << refused;
  EXPECT_NE(refused.find("\r\nRetry-After: 1\r\n"), refused.npos) << refused;
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  EXPECT_EQ(node.find("usage")->find("completion_tokens")->text(), "3");
}

TEST_F(ApiRoutes, damaged_weights_are_told_as_a_failure_of_the_server) {
  start({.spoiled = true});
  EXPECT_EQ(status_of(get("/health/ready")), 200);
  for (const char* more : {"", R"(, "stream": true)"}) {
    const std::string answer = ask(completion(more)).answer();
    EXPECT_EQ(status_of(answer), 500) << answer;
    EXPECT_NE(answer.find("weights are damaged"), answer.npos) << answer;
    EXPECT_EQ(status_of(get("/health/ready")), 503);
  }
  EXPECT_EQ(status_of(get("/health/live")), 200);
}

TEST_F(ApiRoutes, a_prompt_that_takes_long_to_encode_holds_up_no_connection) {
  std::promise<void> begun, may_end;
  start({.encoding = [&] {
    begun.set_value();
    may_end.get_future().wait_for(std::chrono::seconds(20));
  }});
  HttpWire slow = ask(completion(R"(, "max_tokens": 2)"));
  ASSERT_EQ(begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const auto before = steady_clock::now();
  EXPECT_EQ(status_of(get("/health/live")), 200);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(10));
  may_end.set_value();
  EXPECT_EQ(status_of(slow.answer()), 200);
}

TEST_F(ApiRoutes, a_prompt_of_the_whole_context_has_one_more_token) {
  start({});
  const auto asked = [&](std::int64_t tokens) {
    const std::vector<Node> prompt(static_cast<std::size_t>(tokens), Node(5));
    const Node body = Node::map({{"model", "m"}, {"prompt", Node::sequence(prompt)}, {"max_tokens", 1'000'000'000}});
    return post("/v1/completions", to_json(body));
  };
  const std::string answer = asked(64);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  EXPECT_EQ(node.find("usage")->find("completion_tokens")->text(), "1");
  EXPECT_EQ(node.find("choices")->items()[0].find("finish_reason")->text(), "length");
  EXPECT_EQ(status_of(asked(65)), 400);
}

TEST_F(ApiRoutes, a_token_is_one_client_however_it_is_shown) {
  start({});
  const auto engine = brake();
  const auto shown = [&](const char* authorization, const char* id) {
    std::string request = completion(R"(, "max_tokens": 2)");
    return request.replace(request.find("X-Request-Id: r"), 15,
                           fmt::format("X-Request-Id: {}\r\nAuthorization: {}", id, authorization));
  };
  const HttpWire first = queue(shown("Bearer one", "first")), again = queue(shown("bearer one", "again")),
                 other = queue(shown("Bearer two", "other"));
  engine->pass(2);
  const auto answered = [&] {
    const std::lock_guard lock(mutex_);
    return answered_;
  };
  EXPECT_TRUE(comes_true([&] { return answered().size() == 3; }));
  EXPECT_EQ(answered(), (std::vector<std::string>{"first", "other", "again"})) << "each in turn";
}

TEST_F(ApiRoutes, tokens_of_a_text_are_json) {
  start({});
  std::vector<std::int32_t> expected;
  Encoder(tokenizer()).encode("ba do", expected);
  const std::string answer = post("/tokenize", R"({"prompt": "ba do"})");
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  std::vector<Node> tokens;
  for (const std::int32_t token : expected) tokens.emplace_back(token);
  EXPECT_EQ(node, Node::map({{"count", expected.size()}, {"max_model_len", 64}, {"tokens", Node::sequence(tokens)}}));
}

TEST_F(ApiRoutes, requests_about_tokens_are_refused_as_wrong) {
  start({});
  const auto asked = [&](const char* path, std::string_view body) { return status_of(post(path, body)); };
  const auto tokens = [](std::size_t count) {
    const std::vector<Node> five(count, Node(5));
    return to_json(Node::map({{"tokens", Node::sequence(five)}}));
  };
  EXPECT_EQ(asked("/tokenize", R"({"prompt": "ba"})"), 200);
  EXPECT_EQ(asked("/detokenize", tokens(64)), 200);
  EXPECT_EQ(asked("/detokenize", tokens(65)), 400) << "more than a sequence has";
  EXPECT_EQ(asked("/detokenize", R"({"tokens": [5]})"), 200);
  for (const char* wrong : {"5", "{}", R"({"prompt": 5})", R"({"prompt": null})"})
    EXPECT_EQ(asked("/tokenize", wrong), 400) << wrong;
  for (const char* wrong :
       {"5", "{}", R"({"tokens": 5})", R"({"tokens": "5"})", R"({"tokens": [400]})", R"({"tokens": [-1]})"})
    EXPECT_EQ(asked("/detokenize", wrong), 400) << wrong;
}

TEST_F(ApiRoutes, a_text_that_cannot_fit_is_not_encoded) {
  std::atomic<int> encoded = 0;
  start({.encoding = [&] { ++encoded; }});
  std::size_t longest = 0;
  for (std::int32_t token = 0; token < tokenizer().vocabulary(); ++token)
    longest = std::max(longest, tokenizer().bytes_of(token).size());
  const auto asked = [&](std::size_t bytes) {
    return post("/v1/completions", to_json(Node::map({{"model", "m"}, {"prompt", std::string(bytes, '~')}})));
  };
  EXPECT_EQ(status_of(asked(64 * longest + 1)), 400);
  EXPECT_EQ(encoded, 0);
  EXPECT_EQ(status_of(asked(64 * longest)), 400) << "it has a token per byte";
  EXPECT_EQ(encoded, 1);
}

TEST_F(ApiRoutes, metrics_count) {
  start({});
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 3)")).answer()), 200);
  const std::string text = get("/metrics");
  std::vector<std::int32_t> prompt;
  Encoder(tokenizer()).encode("ba", prompt);
  for (const std::string& line : {std::string("vllm:request_success_total{model_name=\"m\"} 1\n"),
                                  std::string("vllm:generation_tokens_total{model_name=\"m\"} 3\n"),
                                  fmt::format("vllm:prompt_tokens_total{{model_name=\"m\"}} {}\n", prompt.size()),
                                  std::string("vllm:prefix_cache_hits_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:num_preemptions_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:spec_decode_num_draft_tokens_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 0\n"),
                                  std::string("systole:cancelled_total{model_name=\"m\"} 0\n"),
                                  std::string("systole:refused_total{model_name=\"m\"} 0\n")})
    EXPECT_NE(text.find("\n" + line), text.npos) << line << text;
}

TEST_F(ApiRoutes, the_step_that_is_served_is_told_of_a_run_alone) {
  start({.step = 7});
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step")->text(), "7");
  serving_->reload({9, [](Engine&, std::int64_t) -> Result<std::int64_t> { return 9; }});
  serving_->note_failed_reload();
  EXPECT_TRUE(comes_true([&] { return serving_->counts().step == 9; }));
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step")->text(), "9");
  const std::string text = get("/metrics");
  for (const char* line :
       {"systole:checkpoint_step{model_name=\"m\"} 9\n", "systole:checkpoint_reloads_total{model_name=\"m\"} 1\n",
        "systole:checkpoint_failed_reloads_total{model_name=\"m\"} 1\n"})
    EXPECT_NE(text.find(std::string("\n") + line), text.npos) << line << text;
}

TEST_F(ApiRoutes, a_published_model_has_no_step) {
  start({});
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step"), nullptr);
  EXPECT_EQ(get("/metrics").find("checkpoint"), std::string::npos);
}

TEST_F(ApiRoutes, an_answer_that_ends_at_a_stop_string_counts_as_ended) {
  start({});
  const auto text_with = [&](const std::string& more) {
    const Node node = parse_json(body_of(ask(completion(R"(, "max_tokens": 3)" + more)).answer()), "answer").value();
    return node.find("choices")->items()[0].find("text")->text();
  };
  const std::string whole = text_with("");
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(text_with(R"(, "stop": )" + to_json(Node(whole.substr(0, 1)))), "");
  EXPECT_EQ(serving_->counts().ended, 2);
  EXPECT_EQ(serving_->counts().cancelled, 0);
}

TEST_F(ApiRoutes, an_answer_has_the_form_that_is_asked_for) {
  start({.slots = 2, .context = 384});
  const auto answered = [&](const std::string& more) {
    std::string request = completion(R"(, "max_tokens": 340, )" + more);  // enough for the longest with all its indents
    request.replace(request.find(R"("temperature": 0)"), 16, R"("temperature": 1)");
    const std::string answer = ask(request).answer();
    EXPECT_EQ(status_of(answer), 200) << answer;
    const Node choice = parse_json(body_of(answer), "answer").value().find("choices")->items()[0];
    EXPECT_EQ(choice.text_at("finish_reason"), "stop") << answer;
    return choice.text_at("text");
  };
  const char* schema = R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5},
      "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 99}, "maxItems": 3}},
      "required": ["name", "sizes"]})";
  for (int seed = 0; seed < 5; ++seed) {
    const Node value =
        parse_json(answered(fmt::format(R"("seed": {}, "guided_json": {})", seed, schema)), "text").value();
    EXPECT_EQ(value.keys(), (std::vector<std::string>{"name", "sizes"}));
    EXPECT_LE(value.find("sizes")->items().size(), 3U);
    for (const Node& size : value.find("sizes")->items()) EXPECT_TRUE(size.as_int(1, 99).ok()) << size.text();
  }
  EXPECT_EQ(answered(R"("guided_regex": "[ab]{3}c")").find('c'), 3U);
  EXPECT_EQ(answered(R"("guided_choice": ["perhaps"])"), "perhaps");

  const std::string stream = body_of(ask(completion(R"(, "stream": true, "guided_choice": ["perhaps"])")).answer());
  EXPECT_NE(stream.find(R"("finish_reason":"stop")"), stream.npos) << stream;
  const std::string cut = ask(completion(R"(, "max_tokens": 2, "guided_regex": "a{20}b{20}")")).answer();
  EXPECT_NE(cut.find(R"("finish_reason":"length")"), cut.npos) << cut;
}

TEST_F(ApiRoutes, a_required_call_is_a_call_whole_and_as_a_stream) {
  start({.context = 384, .chat_template = "{{ messages[0].content }}<tool_call>{{ tools | length }}"});
  const auto chat = [&](const std::string& more) {
    return post(
        "/v1/chat/completions",
        R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 340, "seed": 3, "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
              {"days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["days"]}}}])" +
            more + "}");
  };
  const std::string named = R"(, "tool_choice": {"type": "function", "function": {"name": "weather"}})";
  const std::string answer = chat(named);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node choice = parse_json(body_of(answer), "answer").value().find("choices")->items()[0];
  EXPECT_EQ(choice.text_at("finish_reason"), "tool_calls") << answer;
  const Node& message = *choice.find("message");
  EXPECT_TRUE(message.find("content")->is_null());
  ASSERT_EQ(message.find("tool_calls")->items().size(), 1U);
  const Node& call = message.find("tool_calls")->items()[0];
  EXPECT_EQ(call.text_at("type"), "function");
  EXPECT_TRUE(call.text_at("id").starts_with("call_"));
  EXPECT_EQ(call.find("function")->text_at("name"), "weather");
  const std::string arguments = call.find("function")->text_at("arguments");
  EXPECT_TRUE(parse_json(arguments, "arguments").value().find("days")->as_int(1, 9).ok()) << arguments;

  const std::string single = R"(, "tool_choice": "required", "parallel_tool_calls": false, "stream": true)";
  const std::string stream = body_of(chat(single));
  EXPECT_NE(stream.find(R"("finish_reason":"tool_calls")"), stream.npos) << stream;
  EXPECT_NE(stream.find(R"("delta":{"tool_calls":[{"index":0,"id":"call_)"), stream.npos) << stream;
  EXPECT_EQ(stream.find("<tool_call>"), stream.npos) << "it is no text: " << stream;
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(status_of(chat(R"(, "tool_choice": "auto")")), 200);
  const std::string unused = R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2,
                                 "tools": [{"a": 1}], "tool_choice": "none"})";
  EXPECT_EQ(status_of(post("/v1/chat/completions", unused)), 200);
}

TEST_F(ApiRoutes, a_template_without_calls_of_a_known_format_cannot_require_them) {
  start({.chat_template = "{{ messages[0].content }}"});
  const std::string body =
      R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tool_choice": "required",
          "tools": [{"type": "function", "function": {"name": "f"}}]})";
  const std::string answer = post("/v1/chat/completions", body);
  EXPECT_EQ(status_of(answer), 400) << answer;
  EXPECT_NE(answer.find(R"("param":"tool_choice")"), answer.npos) << answer;
}

TEST_F(ApiRoutes, a_form_that_is_not_supported_is_refused_and_serving_goes_on) {
  start({});
  for (const char* wrong :
       {R"("guided_json": {"not": {}})", R"("guided_regex": "(a")", R"("guided_regex": "(a|b)*a(a|b){40}")"}) {
    const std::string answer = ask(completion(std::string(", ") + wrong)).answer();
    EXPECT_EQ(status_of(answer), 400) << wrong << answer;
    EXPECT_NE(answer.find(R"("param":"guided_)"), answer.npos) << answer;
  }
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 2)")).answer()), 200);
}

}  // namespace
}  // namespace systole
