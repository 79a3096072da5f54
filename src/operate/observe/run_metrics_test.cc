#include "operate/observe/run_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace systole {
namespace {

void see(RunMetrics& metrics, EventBody body) { metrics.see({Seconds(), std::move(body)}); }

Opened opened(const std::string& run) {
  Opened begun;
  begun.run = run;
  return begun;
}

CheckpointSaved saved(std::int64_t step, Bytes bytes) {
  CheckpointSaved save;
  save.step = step;
  save.bytes = bytes;
  return save;
}

TEST(RunMetrics, are_what_the_newest_events_say) {
  RunMetrics metrics;
  EXPECT_EQ(metrics.text(), "") << "nothing is known yet, and nothing is made up";
  see(metrics, opened("a \"b\"\\\nc"));
  StepEnded step;
  step.step = 3;
  step.loss = 2.5;
  step.tokens = 24;
  step.seconds[Category::compute] = Seconds(0.5);
  see(metrics, step);
  step.step = 4;
  step.skipped = true;
  step.loss = std::nan("");
  see(metrics, step);
  see(metrics, saved(4, Bytes(1000)));
  const std::string text = metrics.text();
  for (const char* line :
       {"# TYPE systole_step gauge\nsystole_step 4\n", "systole_loss nan\n", "systole_tokens 24\n",
        "systole_run_info{run=\"a \\\"b\\\"\\\\\\nc\"} 1\n", "systole_skipped_steps_total 1\n",
        "# TYPE systole_step_seconds_total counter\n", "systole_step_seconds_total{category=\"compute\"} 1\n",
        "systole_step_seconds_total{category=\"data_wait\"} 0\n", "systole_checkpoint_step 4\n",
        "systole_checkpoint_bytes_total 1000\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_EQ(text.find("systole_evaluation"), std::string::npos) << "there was none";
}

// Each metric has a source: an event, or the start's look at data.cache.
TEST(RunMetrics, each_row_has_a_value_once_all_events_were_seen) {
  RunMetrics metrics;
  see(metrics, opened("r"));
  see(metrics, StepEnded());
  Evaluated evaluated;
  evaluated.bits_per_byte = 1;
  see(metrics, evaluated);
  see(metrics, saved(1, Bytes(1)));
  see(metrics, MemoryMeasured());
  metrics.see_cache(3, 2, Bytes(100), 1);
  const std::string text = metrics.text();
  for (const char* line : {"systole_data_cache_hits 3\n", "systole_data_cache_misses 2\n",
                           "systole_data_cache_fetched_bytes 100\n", "systole_data_cache_damaged 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  for (const MetricRow& row : metric_rows())
    EXPECT_NE(text.find(fmt::format("# HELP {} {}\n", row.name, row.help)), std::string::npos) << row.name;
}

}  // namespace
}  // namespace systole
