// `systole run --metrics`: what a collector reads during training.

#include <gtest/gtest.h>

#include <future>

#include "ground/net/http_get.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 8, hidden: [], outputs: 2, loss: squared_error }\n"
    "data: { kind: linear, rows: 64, held_out_rows: 0, noise: 0.1 }\n"
    "train: { batch: 8, steps: 1000000, optimizer: { kind: sgd, rate: 0.01 } }\n";

class Metrics : public testing::Test {
 protected:
  void SetUp() override { systole_.write("job.yaml", kJob); }
  // The metrics after a step has ended; then the run is interrupted.
  std::string served(const std::string& more) const {
    const int port = free_port().value();
    const std::future<Captured> run = std::async(std::launch::async, [&] {
      return systole_.shell(fmt::format("echo $$ >pid; exec \"$SYSTOLE\" run job.yaml --metrics {} {}", port, more));
    });
    std::string text;
    while (text.find("systole_step ") == text.npos &&
           run.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const Result<HttpAnswer> answer = http_get({{"127.0.0.1", port}, "/metrics"}, {}, deadline_after(Seconds(1.0)));
      if (answer.ok()) text = answer->body;
    }
    systole_.shell("kill -TERM $(cat pid)");
    return text;
  }
  SystoleRunner systole_;
};

TEST_F(Metrics, are_served_by_a_run_of_one_process_and_of_many) {
  for (const char* more : {"", "--ranks 2"}) {
    const std::string text = served(more);
    for (const char* part : {"# TYPE systole_loss gauge\n", "systole_run_info{run=\"", "systole_tokens ",
                             "systole_step_seconds_total{category=\"compute\"} "})
      EXPECT_NE(text.find(part), std::string::npos) << part << more << text;
  }
}

TEST_F(Metrics, need_a_port_that_is_free) {
  const ListeningSocket held = listen_on({}).value();
  const Captured busy = systole_.run({"run", "job.yaml", "--metrics", std::to_string(held.port)});
  EXPECT_EQ(busy.exit.code, 1) << busy.err;
  EXPECT_NE(busy.err.find(std::to_string(held.port)), std::string::npos) << busy.err;
  const Captured wrong = systole_.run({"run", "job.yaml", "--metrics", "here"});
  EXPECT_EQ(wrong.exit.code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("--metrics: 'here' is no [HOST:]PORT"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace systole::cli
