#include "execute/serve/request_times.h"

#include <gtest/gtest.h>

#include "execute/serve/testing/api_routes_fixture.h"

namespace systole {
namespace {

using RequestTimesTest = ApiRoutesTest;

TEST_F(RequestTimesTest, answered_requests_are_counted_by_part) {
  RequestTimes times;
  start({});
  api_->metrics = [&] { return times.text("m"); };
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 3)")).answer()), 200);
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": -3)")).answer()), 400);
  EXPECT_TRUE(comes_true([&] {
    const std::lock_guard lock(mutex_);
    return accesses_.size() == 2;
  }));
  for (const HttpAccess& access : accesses_) times.add(access);
  const std::string text = get("/metrics");
  for (const char* line : {"vllm:e2e_request_latency_seconds_count{model_name=\"m\"} 1\n",
                           "vllm:e2e_request_latency_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 1\n",
                           "vllm:time_to_first_token_seconds_count{model_name=\"m\"} 1\n",
                           "vllm:request_time_per_output_token_seconds_count{model_name=\"m\"} 1\n",
                           "vllm:request_queue_time_seconds_count{model_name=\"m\"} 1\n",
                           "vllm:request_prefill_time_seconds_count{model_name=\"m\"} 1\n",
                           "vllm:request_decode_time_seconds_count{model_name=\"m\"} 1\n",
                           "systole:request_part_seconds_count{model_name=\"m\",part=\"decode\"} 1\n",
                           "systole:request_part_seconds_count{model_name=\"m\",part=\"wait\"} 1\n"})
    EXPECT_NE(text.find(std::string("\n") + line), text.npos) << line << text;
}

}  // namespace
}  // namespace systole
