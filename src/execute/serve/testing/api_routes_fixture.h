#pragma once
// The routes over a real connection, a tiny engine, and a sequence that holds the engine up.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "execute/serve/api_routes.h"
#include "execute/serve/testing/tiny_engine.h"
#include "execute/serve/testing/tiny_tokenizer.h"
#include "ground/base/document.h"
#include "ground/net/testing/http_wire.h"

namespace systole {

// True once `holds` does; false: not within 20 s.
inline bool comes_true(const std::function<bool()>& holds) {
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
       std::chrono::steady_clock::now() < until;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return holds();
}

// All but those that spell whole characters, so that each token is text at once and no sequence ends by itself.
inline std::vector<std::int32_t> not_plain() {
  std::vector<std::int32_t> tokens;
  for (std::int32_t token = 0; token < tiny_tokenizer().vocabulary(); ++token) {
    const std::string_view bytes = tiny_tokenizer().bytes_of(token);
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

class ApiRoutesTest : public testing::Test {
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
    model_ = make_decoder(tiny_decoder(tiny_tokenizer().vocabulary(), setup.context));
    std::unique_ptr<Engine> engine = sharp_engine(*model_, *device_, {.slots = setup.slots});
    if (setup.spoiled) spoil_weights(*model_, *engine);
    api_ = std::make_unique<ServedApi>(ServedApi{.model = setup.model,
                                                 .tokenizer = tiny_tokenizer(),
                                                 .tokens_of =
                                                     [encoding = setup.encoding](const std::string& text) {
                                                       encoding();
                                                       return tiny_tokens(text);
                                                     },
                                                 .never = not_plain(),
                                                 .context = engine->longest_prompt()});
    if (!setup.chat_template.empty())
      api_->chat.emplace(chat::ChatTemplate::parse(setup.chat_template).value(), tiny_tokenizer(), "", "");
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
                                       accesses_.push_back(access);
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
  std::vector<std::string> answered_;  // ids of requests; guarded by mutex_, as the next
  std::vector<HttpAccess> accesses_;
  std::unique_ptr<ServingThread> serving_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace systole
