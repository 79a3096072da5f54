// refusals-have-reasons: every user error is named in the answer, with a remedy and the exit code of its kind, and
// nothing is left behind.

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

struct Wrong {
  const char* set;  // override of the workload
  int exit;
  const char* named;  // in the message
};

TEST(RefusalsHaveReasons, every_wrong_workload) {
  const Workshop shop;
  shop.write("empty.txt", "");
  shop.write("binary.txt", std::string("\xff\xfe\x00\x01", 4) + "\n");
  const Wrong wrongs[] = {
      {"model.widht=64", 2, "widht"},
      {"model.heads=3", 2, "model.heads"},
      {"model.width=-1", 2, "model.width"},
      {"model.width=99999999999", 2, "model.width"},
      {"model.vocabulary=20", 2, "model.vocabulary"},
      {"model.family=mamba", 2, "mamba"},
      {"train.batch=many", 2, "many"},
      {"train.steps=0", 2, "train.steps"},
      {"train.microbatches=7", 2, "train.microbatches"},
      {"train.optimizer.kind=adam", 2, "adam"},
      {"train.precision=f8e4m3", 3, "f8e4m3"},
      {"train.time=5parsecs", 2, "parsecs"},
      {"resources.memory=5MX", 2, "5MX"},
      {"resources.memory=1MiB", 1, "does not fit"},
      {"data.train.files=absent.txt", 2, "absent.txt"},
      {"data.train.files=empty.txt", 2, "empty.txt"},
      {"data.train.files=binary.txt", 2, "binary.txt"},
      {"data.tokenizer.vocabulary=10", 2, "data.tokenizer.vocabulary"},
      {"mesh.model=2", 3, "train.exact"},
  };
  for (const Wrong& wrong : wrongs) {
    SCOPED_TRACE(wrong.set);
    const Captured refused = shop.systole({"run", "job.yaml", "--folder", "run", "--set", wrong.set});
    EXPECT_EQ(refused.exit.code, wrong.exit) << refused.err;
    EXPECT_NE(refused.err.find("error: "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(wrong.named), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("hint: "), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(shop.path("run/plan.json")));
    EXPECT_FALSE(std::filesystem::exists(shop.path("run/events")) &&
                 !std::filesystem::is_empty(shop.path("run/events")));
  }
}

TEST(RefusalsHaveReasons, every_wrong_command) {
  const Workshop shop;
  const std::vector<std::vector<std::string>> wrongs = {
      {"rum", "job.yaml"},
      {"run"},
      {"run", "absent.yaml"},
      {"run", "job.yaml", "--foldr", "x"},
      {"run", "job.yaml", "--memory", "much"},
      {"run", "job.yaml", "--folder", "x", "--inject", "data"},
      {"run", "job.yaml", "--folder", "x", "--inject", "network=5ms"},
      {"run", "job.yaml", "--folder", "x", "--inject", "kill=dinner"},
      {"resume", "absent"},
      {"why", "absent"},
      {"logs", "absent"},
      {"ckpt", "list", "absent"},
      {"generate", "absent"},
      {"explain", "model.widht"},
      {"catalog", "accelerators", "h1000"},
      {"catalog", "compare", "v5p", "h100", "--dtype", "bf61"},
      {"catalog", "machines", "n1-standard-4", "--accelerator", "l4"},
      {"catalog", "slices", "v5p:4x4x5"},
      {"catalog", "zones", "--region", "us-central"},
      {"catalog", "prices", "--machine", "a3-highpu-8g"},
  };
  for (const auto& words : wrongs) {
    const Captured refused = shop.systole(words);
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("error: "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("hint: "), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace systole::laws
