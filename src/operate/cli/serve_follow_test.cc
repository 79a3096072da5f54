// `systole serve --follow`: newer checkpoints of a run are served as they come, and no request is lost.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

// A stream's text and log probabilities; empty if it did not come to its end. The prompt has more tokens than a page,
// so that keys and values of it are kept.
std::string streamed(HttpClient& client, const std::string& url) {
  std::string all, text, logprobs;
  HttpRequest request{
      .method = "POST",
      .url = url + "/v1/completions",
      .body = R"({"model": "tiny-1", "prompt": "word 1 of a list that goes on for a while, word 2 of it",
                                  "temperature": 0, "max_tokens": 12, "min_tokens": 12, "logprobs": 0, "stream": true})",
      .take = [&](std::string_view piece) {
        all += piece;
        return true;
      }};
  request.headers.emplace_back("Content-Type", "application/json");
  const Result<HttpReply> reply = client.send(request);
  if (!reply.ok() || reply->status != 200 || !all.ends_with("data: [DONE]\n\n")) return {};
  for (std::size_t at = all.find("data: {"); at != all.npos; at = all.find("data: {", at + 1)) {
    const Node chunk = parse_json(all.substr(at + 6, all.find("\n\n", at) - at - 6), "event").value();
    const Node& choice = chunk.find("choices")->items()[0];
    text += choice.find("text")->text();
    if (const Node& of = *choice.find("logprobs"); !of.is_null()) {
      for (const Node& each : of.find("token_logprobs")->items()) logprobs += " " + each.text();
    }
  }
  return text + logprobs;
}

std::string streamed(const Server& server) { return streamed(*HttpClient::open({}).value(), server.url()); }

std::string step_of(Server& server) { return json_of(server.send("GET", "/v1/models/tiny-1")).find("step")->text(); }

bool comes_true(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// A client that streams one answer after the other until it is told to stop.
class Client {
 public:
  explicit Client(const std::string& url)
      : thread_([this, url] {
          const std::unique_ptr<HttpClient> client = HttpClient::open({}).value();
          do answers_.push_back(streamed(*client, url));
          while (!ends_);
        }) {}
  ~Client() { stop(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  const std::vector<std::string>& stop() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return answers_;
  }

 private:
  std::atomic<bool> ends_ = false;
  std::vector<std::string> answers_;
  std::thread thread_;  // last: it uses the others
};

// What `from` has and `to` lacks; the manifest last, as a run writes it. `damaged`: with a byte of each chunk changed.
void copy_checkpoint(const fs::path& from, const fs::path& to, bool damaged) {
  for (const char* part : {"chunks", "manifests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(from / part)) {
      const fs::path target = to / fs::relative(entry.path(), from);
      if (!entry.is_regular_file() || fs::exists(target)) continue;
      std::string bytes = text_of(entry.path());
      if (damaged && part == std::string("chunks")) bytes.at(bytes.size() / 2) ^= 1;
      fs::create_directories(target.parent_path());
      std::ofstream(to / "written", std::ios::binary) << bytes;
      fs::rename(to / "written", target);
    }
  }
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ServeFollow, newer_checkpoints_are_served_while_clients_stream_and_a_damaged_one_is_not) {
  const SystoleRunner systole;
  write_served_workload(systole);
  const auto train = [&](const std::string& run, const std::string& steps) {
    const Captured more = systole.run({"resume", run, "--backend", "reference", "--set", "train.steps=" + steps});
    EXPECT_EQ(more.exit.code, 0) << more.err;
  };
  const Captured made = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "followed"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  std::string last;
  {
    Server server(systole, {"--follow", "latest", "--follow-every", "0.05", "--name", "tiny-1", "--slots", "2"},
                  "followed");
    EXPECT_EQ(step_of(server), "2");
    const std::string before = streamed(server);
    std::vector<std::string> answers;
    {
      Client one(server.url()), two(server.url()), three(server.url());
      train("followed", "4");
      EXPECT_TRUE(comes_true([&] { return step_of(server) == "4"; })) << server.err();
      for (Client* client : {&one, &two, &three}) {
        const std::vector<std::string>& own = client->stop();
        answers.insert(answers.end(), own.begin(), own.end());
      }
    }
    const std::string after = streamed(server);
    EXPECT_NE(before, "");
    EXPECT_NE(before, after);
    for (const std::string& answer : answers) EXPECT_TRUE(answer == before || answer == after) << "'" << answer << "'";
    EXPECT_EQ(server.metric("systole:checkpoint_step"), "4");
    EXPECT_EQ(server.metric("systole:checkpoint_reloads_total"), "1");
    EXPECT_EQ(server.metric("systole:refused_total"), "0");
    EXPECT_EQ(server.metric("systole:cancelled_total"), "0");

    const fs::path ahead = systole.folder() / "ahead", followed = systole.folder() / "followed";
    fs::copy(followed, ahead, fs::copy_options::recursive);
    train("ahead", "6");
    copy_checkpoint(ahead / "checkpoints", followed / "checkpoints", true);
    const auto failed = [&] { return server.metric("systole:checkpoint_failed_reloads_total"); };
    EXPECT_TRUE(comes_true([&] { return failed() == "1"; })) << server.err();
    EXPECT_EQ(streamed(server), after);
    EXPECT_EQ(step_of(server), "4");
    EXPECT_EQ(count_of("the checkpoint of step 6 was passed over", server.err()), 1u) << server.err();

    fs::remove_all(followed / "checkpoints" / "chunks");
    copy_checkpoint(ahead / "checkpoints", followed / "checkpoints", false);
    server.signal(SIGHUP);
    EXPECT_TRUE(comes_true([&] { return step_of(server) == "6"; })) << server.err();
    last = streamed(server);
    EXPECT_NE(last, after);
    EXPECT_EQ(failed(), "1");
    EXPECT_TRUE(server.stop().ok()) << server.err();
    EXPECT_NE(server.err().find("step 4 is served"), std::string::npos) << server.err();
  }
  Server fresh(systole, {"--name", "tiny-1"}, "followed");
  EXPECT_EQ(step_of(fresh), "6");
  EXPECT_EQ(streamed(fresh), last);
  EXPECT_TRUE(fresh.stop().ok()) << fresh.err();
}

TEST(ServeFollow, ranks_change_together_and_answer_as_one_process) {
  const SystoleRunner systole;
  write_served_workload(systole);
  const Captured made = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "followed"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  std::string before, after;
  {
    Server server(systole,
                  {"--ranks", "2", "--follow", "latest", "--follow-every", "0.05", "--name", "tiny-1", "--slots", "2"},
                  "followed");
    before = streamed(server);
    const Captured more = systole.run({"resume", "followed", "--backend", "reference", "--set", "train.steps=4"});
    ASSERT_EQ(more.exit.code, 0) << more.err;
    EXPECT_TRUE(comes_true([&] { return step_of(server) == "4"; })) << server.err();
    after = streamed(server);
    EXPECT_NE(before, after);
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server alone(systole, {"--name", "tiny-1"}, "followed");
  EXPECT_EQ(step_of(alone), "4");
  EXPECT_EQ(streamed(alone), after);
  EXPECT_TRUE(alone.stop().ok()) << alone.err();
}

TEST(ServeFollow, blessed_ones_alone_and_what_cannot_be_followed_is_refused) {
  const SystoleRunner systole;
  write_served_workload(systole);
  const Captured made = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "followed", "--set",
                                     "train.steps=4", "--set", "checkpoint.keep=3"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& why) {
    arguments.insert(arguments.begin(), {"serve", "--backend", "reference", "--port", "0"});
    const Captured got = systole.run(arguments);
    EXPECT_EQ(got.exit.code, code) << got.err;
    EXPECT_NE(got.err.find(why), std::string::npos) << got.err;
  };
  const std::string published = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama";
  refused({published, "--follow", "latest"}, 3, "is a published model, which gets no newer checkpoints");
  refused({published, "--follow", "blessed"}, 3, "hint: leave it out, or name a run");
  refused({"followed", "--follow", "blessed"}, 2, "hint: systole ckpt bless followed marks the newest");
  refused({"followed", "--follow", "best"}, 2, "--follow");
  refused({"followed", "--follow", "latest", "--follow-every", "0"}, 2, "--follow-every");
  refused({"followed", "--follow-every", "1"}, 2, "--follow");

  EXPECT_EQ(systole.run({"ckpt", "bless", "followed@2"}).exit.code, 0);
  Server server(systole, {"--follow", "blessed", "--follow-every", "3600", "--name", "tiny-1"}, "followed");
  EXPECT_EQ(step_of(server), "2");
  EXPECT_EQ(systole.run({"ckpt", "bless", "followed@4"}).exit.code, 0);
  server.signal(SIGHUP);
  EXPECT_TRUE(comes_true([&] { return step_of(server) == "4"; })) << server.err();
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

}  // namespace
}  // namespace systole::cli
