#include "execute/serve/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "execute/serve/testing/api_routes_fixture.h"
#include "ground/base/testing/files.h"

namespace systole {
namespace {

HttpAccess access_of(const std::string& id) {
  return {.peer = "127.0.0.1", .id = id, .method = "POST", .path = "/v1/completions", .status = 200};
}

class AccessLogFile : public testing::Test {
 protected:
  std::unique_ptr<AccessLog> open(const std::string& path) { return AccessLog::open(path, clock_).value(); }
  bool has(const std::string& path, const std::string& id) const {
    return comes_true([&] { return std::filesystem::exists(path) && text_of(path).find(id) != std::string::npos; });
  }
  TemporaryFolder folder_;
  FakeClock clock_;
  const std::string path_ = folder_.path() + "/access.log";
};

TEST_F(AccessLogFile, a_renamed_file_is_followed_by_another) {
  const auto log = open(path_), beside = open(path_);
  log->add(access_of("first"));
  ASSERT_TRUE(has(path_, "first"));
  std::filesystem::rename(path_, path_ + ".1");
  log->add(access_of("second"));
  ASSERT_TRUE(has(path_, "second"));
  beside->add(access_of("third"));
  EXPECT_TRUE(has(path_, "third")) << "of another process, in the same file";
  EXPECT_FALSE(text_of(path_ + ".1").find("second") != std::string::npos);
  EXPECT_EQ(log->lost(), 0);
}

TEST_F(AccessLogFile, a_full_disk_costs_lines_and_nothing_else) {
  const auto log = open("/dev/full");
  for (int i = 0; i < 3; ++i) log->add(access_of("r"));
  EXPECT_TRUE(comes_true([&] { return log->lost() == 3; }));
  EXPECT_NE(log->metrics("m").find("\nsystole:access_log_lost_total{model_name=\"m\"} 3\n"), std::string::npos);
}

TEST_F(AccessLogFile, a_pipe_that_nobody_reads_holds_up_nobody) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(AccessLog::open(path_, clock_).ok());
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  {
    const auto log = open(path_);
    HttpAccess large = access_of(std::string(1 << 16, 'x'));
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 400; ++i) log->add(large);  // 26 MB
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
    EXPECT_GT(log->lost(), 0);
  }
  ::close(reader);
}

class AccessLine : public ApiRoutesTest {
 protected:
  Node line(std::size_t index) {
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex_);
      return accesses_.size() > index;
    }));
    const std::lock_guard lock(mutex_);
    return parse_json(access_line(accesses_.at(index), "now"), "line").value();
  }
};

TEST_F(AccessLine, tells_of_a_request_without_its_prompt) {
  start({});
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 3, "stream": true)")).answer()), 200);
  const Node told = line(0);
  EXPECT_EQ(told.text_at("id"), "r");
  EXPECT_EQ(told.text_at("model"), "m");
  EXPECT_EQ(told.text_at("completion_tokens"), "3");
  EXPECT_EQ(told.text_at("stream"), "true");
  EXPECT_GT(told.find("first_token_s")->as_double().value(), 0);
  EXPECT_EQ(told.find("prompts"), nullptr);
  api_->logs_prompts = true;
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 1)")).answer()), 200);
  EXPECT_EQ(line(1).find("prompts")->items()[0].text(), "ba");
  get("/health/live");
  get("/health");
  EXPECT_TRUE(comes_true([&] {
    const std::lock_guard lock(mutex_);
    return accesses_.size() == 4;
  }));
  EXPECT_EQ(access_line(accesses_[2], "now"), "");
  EXPECT_EQ(access_line(accesses_[3], "now"), "");
}

}  // namespace
}  // namespace systole
