// A starved run beside its prediction: a probe of a reader that is held up, the plan that follows, and the run.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

// Predicted or measured: of all steps together.
double steps_of(const std::string& why, const std::string& which) {
  double sum = 0;
  for (const char* category : {"data_wait", "compute", "update"}) {
    const std::size_t at = why.find(fmt::format("\"{}\"", category));
    const std::string key = fmt::format("\"{}\":", which);
    const std::size_t number = at == std::string::npos ? at : why.find(key, at);
    if (number != std::string::npos) sum += std::strtod(why.c_str() + number + key.size(), nullptr);
  }
  return sum;
}

TEST(FeedMeasured, a_starved_step_takes_what_was_predicted) {
  const SystoleRunner systole;
  std::string text;
  for (int i = 0; i < 1500; ++i) text += fmt::format("alpha {} of beta{}\n", i * 7919 % 1000, i % 13);
  systole.write("text.txt", text);
  systole.write("job.yaml",
                "systole: 1\nname: text\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\n"
                "data: { train: { files: text.txt }, folder: data, tokenizer: { vocabulary: 300 } }\n"
                "train: { batch: 2, steps: 30, optimizer: { kind: sgd, rate: 1e-2 } }\n");
  const auto shell = [&](const std::string& line) {
    const Captured got = systole.shell(line);
    EXPECT_EQ(got.exit.code, 0) << line << "\n" << got.out << got.err;
    return got.out;
  };
  shell("$SYSTOLE -q data build job.yaml && $SYSTOLE data probe job.yaml --seconds 4 --inject data=50ms --save");
  for (const int readers : {1, 2}) {
    shell(fmt::format("$SYSTOLE run job.yaml --set data.readers={0} --inject data=50ms --folder r{0}", readers));
    const std::string why = shell(fmt::format("$SYSTOLE why r{} --json", readers));
    const double predicted = steps_of(why, "predicted_s"), measured = steps_of(why, "measured_s");
    std::printf("NOTE %d readers: predicted %.3f s, measured %.3f s\n", readers, predicted, measured);
    EXPECT_NEAR(predicted, 30 * 0.05 / readers, 0.1 * 30 * 0.05 / readers);
    EXPECT_NEAR(measured, predicted, 0.1 * predicted) << readers << " " << why;
  }
}

}  // namespace
}  // namespace systole::cli
