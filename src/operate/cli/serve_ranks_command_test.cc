// `systole serve --ranks` and `systole generate --ranks`: one model in several processes, of one machine and of several.

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "ground/base/number_from.h"
#include "ground/net/socket.h"
#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

constexpr const char* kToken = "00112233445566778899aabbccddeeff\n";
// In the layout of llama, with two heads of keys and values.
constexpr const char* kModel = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama";

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::optional<pid_t> pid = number_from<pid_t>(entry.path().filename().string());
    const std::string stat = pid ? text_of(fmt::format("/proc/{}/stat", *pid)) : std::string();
    const std::size_t begin = stat.rfind(") ");
    if (begin == stat.npos || stat[begin + 2] == 'Z') continue;
    if (stat.substr(begin + 4, stat.find(' ', begin + 4) - begin - 4) == std::to_string(parent))
      children.push_back(*pid);
  }
  return children;
}

std::string answer_of(Server& server, int number) {
  const HttpReply reply = server.send(
      "POST", "/v1/completions",
      fmt::format(R"({{"model": "tiny-1", "prompt": "word {}", "temperature": 0, "max_tokens": 12}})", number));
  EXPECT_EQ(reply.status, 200) << reply.body;
  return text_at(json_of(reply));
}

// The text and the log probabilities, as they were sent.
std::string choices_of(Server& server, int number) {
  const HttpReply reply = server.send(
      "POST", "/v1/completions",
      fmt::format(R"({{"model": "tiny-1", "prompt": "word {}", "temperature": 0, "max_tokens": 12, "logprobs": 3}})",
                  number));
  EXPECT_EQ(reply.status, 200) << reply.body;
  return to_json(*json_of(reply).find("choices"));
}

bool is_answering(Server& server) {
  for (int i = 0; i < 500; ++i) {
    if (server.metric("vllm:num_requests_running") == "1") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

Command rank_command(const SystoleRunner& systole, const std::string& rendezvous, const std::string& rank) {
  Command command;
  command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole",
                  "serve",
                  "tiny-1",
                  "--backend",
                  "reference",
                  "--ranks",
                  "2",
                  "--rank",
                  rank,
                  "--rendezvous",
                  rendezvous,
                  "--ranks-token-file",
                  "token"};
  command.cwd = systole.folder().string();
  command.env = {{"NO_COLOR", "1"}, {"HOME", command.cwd}};
  command.err = ChildStream::file(command.cwd + "/rank.err");
  return command;
}

class ServeRanks : public ServeCommand {};

TEST_F(ServeRanks, answers_are_those_of_one_process_and_all_end_when_asked) {
  std::vector<std::string> expected;
  {
    Server server(*systole_);
    for (int i = 0; i < 3; ++i) expected.push_back(answer_of(server, i));
  }
  Server server(*systole_, {"--ranks", "2"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(server, i), expected[i]) << i;
  const std::vector<pid_t> ranks = children_of(server.pid());
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_TRUE(server.stop().ok()) << server.err();
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", ranks[0]))) << "it outlives rank 0";
}

TEST_F(ServeRanks, weights_in_int8_give_the_log_probabilities_of_one_process) {
  std::vector<std::string> expected;
  {
    Server server(*systole_, {"--weights", "int8"});
    for (int i = 0; i < 3; ++i) expected.push_back(choices_of(server, i));
  }
  {
    Server server(*systole_);
    EXPECT_NE(choices_of(server, 0), expected[0]) << "int8 changes nothing";
  }
  Server server(*systole_, {"--ranks", "2", "--weights", "int8"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(choices_of(server, i), expected[i]) << i;
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

// In the middle of an answer, and while nobody asks.
TEST_F(ServeRanks, a_killed_rank_ends_the_server_with_its_reason) {
  for (const bool asked : {false, true}) {
    Server server(*systole_, {"--ranks", "2", "--slots", "1"});
    const std::vector<pid_t> ranks = children_of(server.pid());
    ASSERT_EQ(ranks.size(), 1U);
    std::thread client;
    if (asked) {
      client = std::thread([body = server.another_client()] {
        try {
          const HttpReply reply =
              body(R"({"model": "tiny-1", "prompt": "word", "temperature": 0, "max_tokens": 200, "ignore_eos": true})");
          EXPECT_EQ(reply.status, 500) << reply.body;
        } catch (const Failure& gone) { ADD_FAILURE() << gone.what(); }
      });
      ASSERT_TRUE(is_answering(server));
    }
    const auto began = std::chrono::steady_clock::now();
    ASSERT_EQ(::kill(ranks[0], SIGKILL), 0);
    const Exit exit = server.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    if (asked) client.join();
    EXPECT_EQ(exit.code, 1) << to_string(exit);
    EXPECT_NE(server.err().find("rank 1 has ended, it was killed by SIGKILL"), std::string::npos) << server.err();
  }
}

TEST_F(ServeRanks, ranks_of_several_machines_meet_at_a_rendezvous) {
  systole_->write_secret("token", kToken);
  std::string expected;
  {
    Server server(*systole_);
    expected = answer_of(server, 7);
  }
  const std::string rendezvous = fmt::format("127.0.0.1:{}", free_port("127.0.0.1").value());
  Process rank = Process::start(rank_command(*systole_, rendezvous, "1")).value();
  Server server(*systole_, {"--ranks", "2", "--rendezvous", rendezvous, "--ranks-token-file", "token"});
  EXPECT_EQ(answer_of(server, 7), expected);
  rank.signal(SIGTERM).value();  // it waits for rank 0
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_EQ(answer_of(server, 7), expected);
  EXPECT_TRUE(server.stop().ok()) << server.err();
  EXPECT_TRUE(rank.wait().ok()) << text_of(systole_->folder() / "rank.err");

  rank = Process::start(rank_command(*systole_, rendezvous, "1")).value();
  Server again(*systole_, {"--ranks", "2", "--rendezvous", rendezvous, "--ranks-token-file", "token"});
  rank.signal(SIGKILL).value();
  rank.wait();
  EXPECT_EQ(again.wait().code, 1);
  EXPECT_NE(again.err().find("rank 1"), std::string::npos) << again.err();
}

TEST_F(ServeRanks, generate_writes_what_one_process_writes) {
  const std::vector<std::string> words{"generate", kModel, "--prompt", "Hello", "--tokens", "12", "--temperature", "0"};
  const Captured whole = systole_->run(words);
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  std::vector<std::string> cut = words;
  cut.insert(cut.end(), {"--ranks", "2"});
  const Captured ranks = systole_->run(cut);
  EXPECT_EQ(ranks.exit.code, 0) << ranks.err;
  EXPECT_EQ(ranks.out, whole.out);
  EXPECT_FALSE(whole.out.empty());
}

TEST_F(ServeRanks, what_cannot_be_is_refused_with_a_hint) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"serve", "tiny-1", "--backend", "reference", "--port", "0"};
    words.insert(words.end(), more.begin(), more.end());
    const Captured refused = systole_->run(words);
    EXPECT_GT(refused.exit.code, 0) << refused.err;
    return refused.err;
  };
  const auto expect = [&](std::vector<std::string> more, const std::string& what, const std::string& hint) {
    const std::string text = refusal(std::move(more));
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find(hint), std::string::npos) << text;
  };
  expect({"--ranks", "3"}, "2 heads of keys and values do not divide over 3", "hint: as many devices as divide 2");
  expect({"--ranks", "2", "--replicas", "2"}, "--replicas of a model that several ranks hold", "leave out --replicas");
  expect({"--ranks", "2", "--rank", "1"}, "are for ranks of several machines", "--rendezvous host:port");
  expect({"--ranks", "2", "--ranks-tls"}, "are for ranks of several machines", "--rendezvous host:port");
  expect({"--ranks", "2", "--rank", "2", "--rendezvous", "127.0.0.1:1"}, "--rank 2 of 2 ranks", "--rank 0 to 1");
  expect({"--ranks", "2", "--rendezvous", "127.0.0.1:0"}, "the token that they share", "--ranks-token-file FILE");
}

}  // namespace
}  // namespace systole::cli
