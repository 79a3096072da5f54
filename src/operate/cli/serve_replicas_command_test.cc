// `systole serve --replicas`: processes behind one port, and what happens when they end.

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <thread>

#include "ground/base/number_from.h"
#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

// "S 12": state and parent of a process, of /proc/PID/stat; empty: there is none.
std::string state_and_parent(pid_t pid) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t begin = stat.rfind(") ");
  if (begin == stat.npos) return {};
  return stat.substr(begin + 2, stat.find(' ', begin + 4) - begin - 2);
}

bool is_living(const std::string& state) { return !state.empty() && state[0] != 'Z' && state[0] != 'X'; }
bool is_alive(pid_t pid) { return is_living(state_and_parent(pid)); }

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::optional<pid_t> pid = number_from<pid_t>(entry.path().filename().string());
    const std::string state = pid ? state_and_parent(*pid) : std::string();
    if (is_living(state) && state.substr(2) == std::to_string(parent)) children.push_back(*pid);
  }
  return children;
}

bool comes_true(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return holds();
}

// A number of the balancer's own metrics, which have no label, or of one replica.
std::string own_metric(Server& server, const std::string& name) {
  const std::string text = server.send("GET", "/metrics").body;
  const std::size_t begin = text.find("\n" + name + " "), space = begin + name.size() + 1;
  return begin == text.npos ? "absent" : text.substr(space + 1, text.find('\n', space) - space - 1);
}

bool has_ready(Server& server, int replicas) {
  return comes_true([&] { return own_metric(server, "systole:replicas_ready") == std::to_string(replicas); });
}

std::string prompt(int number, const std::string& more) {
  return fmt::format(R"({{"model": "tiny-1", "prompt": "word {}", "temperature": 0{}}})", number, more);
}

class ServeReplicas : public ServeCommand {};

TEST_F(ServeReplicas, answers_are_those_of_one_server) {
  const std::string more = R"(, "max_tokens": 12)", stream = more + R"(, "stream": true)";
  const auto complete = [](Server& server, const std::string& body) {
    const HttpReply reply = server.send("POST", "/v1/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.body;
  };
  std::vector<std::string> expected;
  {
    Server server(*systole_);
    for (int i = 0; i < 4; ++i)
      expected.push_back(text_at(parse_json(complete(server, prompt(i, more)), "reply").value()));
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server server(*systole_, {"--replicas", "2", "--slots", "2"});
  EXPECT_NE(text_of(systole_->folder() / "serve.out").find("2 replicas, each with 2 sequences of 256 tokens"),
            std::string::npos);
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(text_at(parse_json(complete(server, prompt(i, more)), "reply").value()), expected[i]) << i;
    const std::string events = complete(server, prompt(i, stream));
    std::string streamed;
    for (std::size_t at = events.find("data: {"); at != events.npos; at = events.find("data: {", at + 1))
      streamed += text_at(parse_json(events.substr(at + 6, events.find("\n\n", at) - at - 6), "event").value());
    EXPECT_EQ(streamed, expected[i]) << events;
    EXPECT_TRUE(events.ends_with("data: [DONE]\n\n")) << events;
  }
  for (const char* replica : {"0", "1"}) {
    const std::string name = fmt::format("vllm:request_success_total{{model_name=\"tiny-1\",replica=\"{}\"}}", replica);
    EXPECT_TRUE(comes_true([&] { return own_metric(server, name) == "4"; })) << own_metric(server, name);
  }
  EXPECT_EQ(json_of(server.send("GET", "/v1/models")).find("data")->items()[0].find("id")->text(), "tiny-1");
  EXPECT_EQ(server.send("POST", "/v1/completions", "{").status, 400);
  EXPECT_TRUE(server.stop().ok()) << server.err();
  EXPECT_NE(server.err().find("over 2 replicas"), std::string::npos) << server.err();
}

TEST_F(ServeReplicas, a_killed_replica_loses_no_request_that_was_not_begun_to_be_answered_and_starts_again) {
  Server server(*systole_, {"--replicas", "2"});
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const std::vector<pid_t> replicas = children_of(server.pid());
  ASSERT_EQ(replicas.size(), 2U);
  std::vector<std::thread> clients;
  std::vector<int> statuses(4);
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      const auto client = server.another_client();
      statuses[static_cast<std::size_t>(i)] =
          client(prompt(i, R"(, "n": 2, "max_tokens": 200, "min_tokens": 200)")).status;
    });
  }
  EXPECT_TRUE(comes_true([&] {
    return own_metric(server, R"(systole:outstanding_tokens{replica="0"})") != "0" &&
           own_metric(server, R"(systole:outstanding_tokens{replica="1"})") != "0";
  }));
  EXPECT_EQ(::kill(replicas[0], SIGKILL), 0);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(statuses, std::vector<int>(4, 200));
  EXPECT_GE(std::stoi(own_metric(server, "systole:balancer_retries_total")), 1);
  EXPECT_TRUE(has_ready(server, 2)) << server.err();
  EXPECT_TRUE(comes_true([&] { return server.err().find("serves again") != std::string::npos; })) << server.err();
  EXPECT_NE(server.err().find("has ended (killed by SIGKILL): it starts again in 1"), std::string::npos)
      << server.err();
  const std::vector<pid_t> last = children_of(server.pid());
  EXPECT_EQ(last.size(), 2U);
  EXPECT_TRUE(server.stop().ok()) << server.err();
  for (const pid_t replica : last) EXPECT_FALSE(is_alive(replica));
}

TEST_F(ServeReplicas, that_follow_look_at_a_hangup_and_start_again_when_their_first_checkpoint_is_gone) {
  const auto trained = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--backend", "reference"});
    const Captured made = systole_->run(words);
    EXPECT_EQ(made.exit.code, 0) << made.err;
  };
  trained({"run", "job.yaml", "--folder", "followed"});
  Server server(*systole_, {"--replicas", "2", "--follow", "latest", "--follow-every", "3600", "--name", "tiny-1"},
                "followed");
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const auto serves = [&](const char* replica, const char* step) {
    const std::string name = fmt::format("systole:checkpoint_step{{model_name=\"tiny-1\",replica=\"{}\"}}", replica);
    return comes_true([&] { return own_metric(server, name) == step; });
  };
  EXPECT_TRUE(serves("0", "2") && serves("1", "2")) << server.err();
  trained({"resume", "followed", "--set", "train.steps=4"});  // keeps one checkpoint
  server.signal(SIGHUP);
  EXPECT_TRUE(serves("0", "4") && serves("1", "4")) << server.err();
  const std::vector<pid_t> replicas = children_of(server.pid());
  ASSERT_EQ(replicas.size(), 2U);
  EXPECT_EQ(::kill(replicas[0], SIGKILL), 0);
  EXPECT_TRUE(comes_true([&] { return server.err().find("serves again") != std::string::npos; })) << server.err();
  EXPECT_TRUE(serves("0", "4") && serves("1", "4")) << server.err();
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeReplicas, one_whose_checkpoint_is_gone_is_given_up_at_once_and_the_others_serve_on) {
  const Captured made = systole_->run({"run", "job.yaml", "--folder", "removed", "--backend", "reference"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  Server server(*systole_, {"--replicas", "2", "--name", "tiny-1"}, "removed");
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const Captured more = systole_->run({"resume", "removed", "--set", "train.steps=4", "--backend", "reference"});
  ASSERT_EQ(more.exit.code, 0) << more.err;  // it keeps one checkpoint
  const std::vector<pid_t> replicas = children_of(server.pid());
  ASSERT_EQ(replicas.size(), 2U);
  EXPECT_EQ(::kill(replicas[0], SIGKILL), 0);
  EXPECT_TRUE(comes_true([&] { return server.err().find("is given up") != std::string::npos; })) << server.err();
  EXPECT_NE(server.err().find("checkpoint 'removed@2', which all serve, is gone"), std::string::npos) << server.err();
  EXPECT_NE(server.err().find("--follow latest"), std::string::npos) << server.err();
  EXPECT_EQ(server.complete(R"(, "max_tokens": 2)").status, 200);
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

// Clients that ask until they go, each over connections of its own; every second answer is a stream.
class Load {
 public:
  Load(const Server& server, int clients) {
    for (int i = 0; i < clients; ++i) {
      threads_.emplace_back([this, i, client = server.another_client()] {
        for (int request = i; !is_over_; ++request) {
          const bool streams = request % 2 == 0;
          const std::string more = fmt::format(R"(, "max_tokens": 24, "min_tokens": 24, "stream": {})", streams);
          try {
            const HttpReply reply = client(prompt(request, more));
            const bool is_whole = reply.status == 200 && (!streams || reply.body.ends_with("data: [DONE]\n\n"));
            ++(is_whole ? answered_ : failed_);
          } catch (const std::exception&) { ++failed_; }
        }
      });
    }
  }
  ~Load() { end(); }
  void end() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int answered() const { return answered_; }
  int failed() const { return failed_; }

 private:
  std::atomic<bool> is_over_ = false;
  std::atomic<int> answered_ = 0, failed_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(ServeReplicas, a_hangup_restarts_them_one_at_a_time_and_no_request_fails) {
  Server server(*systole_, {"--replicas", "2"});
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const std::vector<pid_t> before = children_of(server.pid());
  ASSERT_EQ(before.size(), 2U);
  Load load(server, 3);
  EXPECT_TRUE(comes_true([&] { return load.answered() >= 6; }));
  server.signal(SIGHUP);
  EXPECT_TRUE(comes_true([&] { return server.err().find("replica 0 is restarted") != std::string::npos; }));
  EXPECT_GE(std::stoi(own_metric(server, "systole:replicas_ready")), 2) << "no place is empty";
  EXPECT_TRUE(comes_true([&] { return server.err().find("replica 1 is restarted") != std::string::npos; }))
      << server.err();
  const int restarted = load.answered();
  EXPECT_TRUE(comes_true([&] { return load.answered() >= restarted + 6; })) << "the new ones answer";
  load.end();
  EXPECT_EQ(load.failed(), 0) << server.err();
  EXPECT_EQ(own_metric(server, "systole:balancer_retries_total"), "0");
  EXPECT_EQ(own_metric(server, "systole:balancer_failed_total"), "0");
  const std::vector<pid_t> after = children_of(server.pid());
  EXPECT_EQ(after.size(), 2U);
  for (const pid_t replica : after) EXPECT_EQ(std::ranges::count(before, replica), 0);
  for (const pid_t replica : before) EXPECT_FALSE(is_alive(replica));
  EXPECT_EQ(server.err().find("has ended"), std::string::npos) << "it was asked for: " << server.err();
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeReplicas, a_restart_finds_the_newest_checkpoint_and_without_one_the_old_replicas_stay) {
  const Captured made = systole_->run({"run", "job.yaml", "--folder", "rolled", "--backend", "reference"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  Server server(*systole_, {"--replicas", "2", "--name", "tiny-1"}, "rolled");
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const Captured more = systole_->run({"resume", "rolled", "--set", "train.steps=4", "--backend", "reference"});
  ASSERT_EQ(more.exit.code, 0) << more.err;  // it keeps one checkpoint
  const auto said = [&](const char* what) {
    return comes_true([&] { return server.err().find(what) != std::string::npos; });
  };
  server.signal(SIGHUP);
  EXPECT_TRUE(said("replica 0 is restarted, and serves rolled@4")) << server.err();
  EXPECT_TRUE(said("replica 1 is restarted, and serves rolled@4")) << server.err();

  const std::vector<pid_t> before = children_of(server.pid());
  std::filesystem::rename(systole_->folder() / "rolled", systole_->folder() / "elsewhere");
  server.signal(SIGHUP);
  EXPECT_TRUE(said("replica 0 is not restarted, and goes on as it is")) << server.err();
  EXPECT_NE(server.err().find("hint: "), std::string::npos) << server.err();
  EXPECT_EQ(children_of(server.pid()), before);
  EXPECT_TRUE(has_ready(server, 2)) << server.err();
  EXPECT_EQ(server.complete(R"(, "max_tokens": 2)").status, 200);
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeReplicas, a_canary_answers_its_share_under_the_same_name_and_a_broken_one_is_left_out) {
  const Captured made = systole_->run({"run", "job.yaml", "--folder", "newer", "--backend", "reference"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const std::vector<std::string> one{"--replicas", "1", "--canary-weight", "25", "--canary"};
  const auto with = [&](const char* canary) {
    std::vector<std::string> words = one;
    words.emplace_back(canary);
    return words;
  };
  {
    Server server(*systole_, with("newer"));
    EXPECT_TRUE(comes_true([&] { return server.err().find("the canary serves") != std::string::npos; }))
        << server.err();
    std::vector<std::string> models;
    for (int i = 0; i < 12; ++i) {
      const HttpReply reply = server.send("POST", "/v1/completions", prompt(0, R"(, "max_tokens": 2)"));
      EXPECT_EQ(reply.status, 200) << reply.body;
      const std::string* model = reply.header("x-systole-model");
      models.push_back(model == nullptr ? "none" : *model);
      EXPECT_EQ(json_of(reply).text_at("model"), "tiny-1");
    }
    EXPECT_EQ(std::ranges::count(models, "newer@2"), 3);
    EXPECT_EQ(std::ranges::count(models, "tiny-1@2"), 9);
    EXPECT_EQ(own_metric(server, R"(systole:version_latency_seconds_count{version="canary"})"), "3");
    EXPECT_EQ(own_metric(server, R"(systole:version_latency_seconds_count{version="stable"})"), "9");
    EXPECT_EQ(json_of(server.send("GET", "/health/ready")).text_at("replicas"), "1");
    server.signal(SIGHUP);
    EXPECT_TRUE(comes_true([&] { return server.err().find("the canary is restarted") != std::string::npos; }))
        << server.err();
    EXPECT_NE(server.err().find("replica 0 is restarted, and serves tiny-1@2"), std::string::npos) << server.err();
    EXPECT_NE(server.err().find("[the canary] served 3 answers"), std::string::npos) << server.err();
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server server(*systole_, with("nothing"));
  EXPECT_TRUE(comes_true([&] { return server.err().find("the canary is given up") != std::string::npos; }))
      << server.err();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(server.complete(R"(, "max_tokens": 2)").status, 200);
  EXPECT_TRUE(server.stop().ok()) << server.err();
  const Captured over = systole_->run({"serve", "tiny-1", "--canary", "newer", "--canary-weight", "101"});
  EXPECT_EQ(over.exit.code, 2) << over.err;
  EXPECT_NE(over.err.find("--canary-weight: 101 percent, at most 100"), std::string::npos) << over.err;
}

TEST_F(ServeReplicas, a_shadow_of_the_same_model_answers_the_same_and_is_seen_in_metrics_only) {
  Server server(*systole_, {"--replicas", "1", "--shadow", "tiny-1", "--shadow-weight", "50"});
  EXPECT_TRUE(comes_true([&] { return server.err().find("the shadow serves") != std::string::npos; })) << server.err();
  for (int i = 0; i < 8; ++i) {
    const std::string more = fmt::format(R"(, "max_tokens": 6, "stream": {})", i % 4 == 1);
    const HttpReply reply = server.send("POST", "/v1/completions", prompt(i, more));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.header("x-systole-model"), nullptr);
  }
  EXPECT_TRUE(comes_true([&] { return own_metric(server, "systole:shadow_same_text_total") == "4"; }))
      << server.send("GET", "/metrics").body;
  EXPECT_EQ(own_metric(server, "systole:shadow_different_text_total"), "0");
  EXPECT_EQ(own_metric(server, R"(systole:version_latency_seconds_count{version="stable"})"), "8");
  EXPECT_EQ(own_metric(server, R"(systole:version_latency_seconds_count{version="shadow"})"), "4");
  EXPECT_EQ(own_metric(server, R"(systole:version_time_to_first_token_seconds_count{version="shadow"})"), "2");
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeReplicas, none_outlives_the_balancer) {
  Server server(*systole_, {"--replicas", "2"});
  ASSERT_TRUE(has_ready(server, 2)) << server.err();
  const std::vector<pid_t> replicas = children_of(server.pid());
  ASSERT_EQ(replicas.size(), 2U);
  server.kill();
  for (const pid_t replica : replicas) EXPECT_TRUE(comes_true([&] { return !is_alive(replica); }));
}

TEST_F(ServeReplicas, tokens_are_asked_for_by_the_balancer_and_what_is_wrong_is_said_once) {
  systole_->write_secret("tokens", "first\n");
  Server server(*systole_, {"--replicas", "2", "--token-file", "tokens"});
  EXPECT_EQ(server.send("GET", "/v1/models").status, 401);
  EXPECT_EQ(server.send("GET", "/v1/models", "", {}, "first").status, 200);
  EXPECT_EQ(server.send("GET", "/health/ready").status, 200);
  EXPECT_TRUE(server.stop().ok()) << server.err();

  const auto refused = [](std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    words.insert(words.end(), {"--replicas", "2", "--port", "0"});
    return systole_->run(words);
  };
  const Captured absent = refused({"nothing", "--backend", "reference"});
  const Captured alone = systole_->run({"serve", "nothing", "--backend", "reference", "--port", "0"});
  EXPECT_EQ(absent.exit.code, alone.exit.code);
  EXPECT_EQ(absent.err, alone.err);
  const Captured device = refused({"tiny-1", "--device", "xla-cpu"});
  EXPECT_EQ(device.exit.code, 3) << device.err;
  EXPECT_NE(device.err.find("--replicas: several processes on xla-cpu"), std::string::npos) << device.err;
  const Captured beside = systole_->run({"serve", "tiny-1", "--canary", "tiny-1", "--device", "xla-cpu"});
  EXPECT_EQ(beside.exit.code, 3) << beside.err;
  EXPECT_NE(beside.err.find("--canary: several processes on xla-cpu"), std::string::npos) << beside.err;
  const Captured many = systole_->run({"serve", "tiny-1", "--replicas", "1000000000"});
  EXPECT_EQ(many.exit.code, 2) << many.err;
  const Captured open = refused({"tiny-1", "--backend", "reference", "--listen", "0.0.0.0"});
  EXPECT_EQ(open.exit.code, 2) << open.err;
  EXPECT_NE(open.err.find("token"), std::string::npos) << open.err;
}

}  // namespace
}  // namespace systole::cli
