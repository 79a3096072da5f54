// The access log of `systole serve`, and what `systole explain` says of it.

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

using ServeAccess = ServeCommand;

TEST_F(ServeAccess, a_log_has_each_requests_parts_and_is_explained) {
  const std::string log = (systole_->folder() / "access.log").string();
  Server server(*systole_, {"--access-log", "access.log"});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(server.complete(R"(, "max_tokens": 8)").status, 200);
  EXPECT_EQ(server.metric("systole:access_log_lost_total"), "0");
  EXPECT_EQ(server.metric("vllm:request_decode_time_seconds_count"), "2");
  const auto lines = [&] { return std::ranges::count(text_of(log), '\n'); };
  for (int i = 0; i < 400 && lines() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::filesystem::rename(log, log + ".1");
  EXPECT_EQ(server.complete(R"(, "max_tokens": 4)").status, 200);
  EXPECT_TRUE(server.stop().ok()) << server.err();

  const std::string first = text_of(log + ".1");
  EXPECT_EQ(std::ranges::count(first, '\n'), 2) << first;
  EXPECT_EQ(first.find("word"), first.npos) << "a prompt";
  const Node line = parse_json(text_of(log), "line").value();
  double sum = 0;
  for (const Node::Entry& part : line.find("parts_s")->entries()) sum += part.value.as_double().value();
  EXPECT_NEAR(sum, line.find("total_s")->as_double().value(), 1e-9);

  const Captured told = systole_->run({"explain", "access.log.1"});
  EXPECT_EQ(told.exit.code, 0) << told.err;
  EXPECT_NE(told.out.find("2 requests"), told.out.npos) << told.out;
  EXPECT_NE(told.out.find("\nA request takes "), told.out.npos) << told.out;
  EXPECT_EQ(systole_->run({"explain", "."}).out.find("1 request\n"), 0u) << "access.log of the folder";
}

TEST_F(ServeAccess, what_is_no_log_is_refused) {
  const Captured missing = systole_->run({"explain", "missing.log"});
  EXPECT_EQ(missing.exit.code, 2) << missing.err;
  EXPECT_NE(missing.err.find("--access-log"), missing.err.npos) << missing.err;
  EXPECT_EQ(systole_->run({"explain", "job.yaml"}).exit.code, 2);
  const Captured shared = systole_->run({"serve", "tiny-1", "--replicas", "2", "--access-log", "-"});
  EXPECT_EQ(shared.exit.code, 3) << shared.err;
  const Captured closed = systole_->run({"serve", "tiny-1", "--backend", "reference", "--access-log", "no/such/file"});
  EXPECT_NE(closed.exit.code, 0);
  EXPECT_NE(closed.err.find("access log 'no/such/file'"), closed.err.npos) << closed.err;
}

}  // namespace
}  // namespace systole::cli
