#pragma once
// For tests of `systole serve`: a trained run, and servers of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/net/http_client.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {

inline constexpr const char* kServedWorkload = R"(systole: 1
name: tiny
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 256 }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { kind: sentencepiece, vocabulary: 300 }
  folder: data
train: { batch: 1, steps: 2, optimizer: { kind: adamw, rate: 1e-3 }, precision: f32 }
checkpoint: { every: 2, keep: 1 }
)";

// As job.yaml, with its text.
inline void write_served_workload(const SystoleRunner& systole) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += fmt::format("word {} of a list that goes on for a while, in its {}th line\n", i * 7 % 50, i);
  systole.write("text.txt", text);
  systole.write("job.yaml", kServedWorkload);
}

// A server of the run "tiny-1", or of another model, until the object goes.
class Server {
 public:
  explicit Server(const SystoleRunner& runner, std::vector<std::string> more = {}, const std::string& model = "tiny-1")
      : runner_(runner) {
    Command command;
    command.argv = {
        SYSTOLE_BINARY_DIR "/src/operate/cli/systole", "serve", model, "--backend", "reference", "--port", "0"};
    command.argv.insert(command.argv.end(), more.begin(), more.end());
    command.cwd = runner.folder().string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", command.cwd}};
    command.out = ChildStream::file(command.cwd + "/serve.out");
    command.err = ChildStream::file(command.cwd + "/serve.err");
    process_ = std::make_unique<Process>(Process::start(command).value());
    for (int i = 0; i < 1200 && url_.empty() && !process_->has_ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::string out = text_of(runner.folder() / "serve.out");
      const std::size_t begin = out.find("http"), end = out.find("/v1", std::min(begin, out.size()));
      if (end != out.npos) url_ = out.substr(begin, end - begin);
    }
    EXPECT_FALSE(url_.empty()) << err();
    client_ = HttpClient::open({.checks_certificate = false}).value();
  }

  HttpReply send(const std::string& method, const std::string& path, const std::string& body = "",
                 std::function<bool(std::string_view)> take = {}, const std::string& token = "") {
    HttpRequest request{.method = method, .url = url_ + path, .body = body, .take = std::move(take)};
    if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
    if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
    return client_->send(request).value();
  }
  HttpReply complete(const std::string& more) {
    return send("POST", "/v1/completions", R"({"model": "tiny-1", "prompt": "word", "temperature": 0)" + more + "}");
  }
  // Completes on a connection of its own, for another thread.
  std::function<HttpReply(const std::string& body)> another_client() const {
    return [url = url_, client = std::shared_ptr<HttpClient>(HttpClient::open({}).value())](const std::string& body) {
      return client->send({.method = "POST", .url = url + "/v1/completions", .body = body, .timeout = Seconds(120.0)})
          .value();
    };
  }
  std::string metric(const std::string& name) {
    const std::string text = send("GET", "/metrics").body;
    const std::size_t begin = text.find("\n" + name + "{"), end = text.find('\n', begin + 1);
    const std::size_t space = text.rfind(' ', end);
    return begin == text.npos ? "absent" : text.substr(space + 1, end - space - 1);
  }
  void signal(int number) const { process_->signal(number).value(); }
  Exit stop() {
    signal(SIGTERM);
    return process_->wait();
  }
  Exit wait() { return process_->wait(); }
  const std::string& url() const { return url_; }
  pid_t pid() const { return process_->pid(); }
  // Without its time to end.
  void kill() {
    signal(SIGKILL);
    process_->wait();
  }
  std::string err() const { return text_of(runner_.folder() / "serve.err"); }

 private:
  const SystoleRunner& runner_;
  std::unique_ptr<Process> process_;
  std::string url_;
  std::unique_ptr<HttpClient> client_;
};

inline Node json_of(const HttpReply& reply) { return parse_json(reply.body, "reply").value(); }
inline std::string text_at(const Node& node) { return node.find("choices")->items()[0].find("text")->text(); }

class ServeCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    systole_ = std::make_unique<SystoleRunner>();
    write_served_workload(*systole_);
    const Captured made = systole_->run({"run", "job.yaml", "--backend", "reference"});
    ASSERT_EQ(made.exit.code, 0) << made.err;
  }
  static void TearDownTestSuite() { systole_.reset(); }

  // Serving as the last test left it would hide a server that does not end, so every test has its own.
  static inline std::unique_ptr<SystoleRunner> systole_;
};

}  // namespace systole::cli
