// Checkpoints of a run in S3, through the command line, against its twin in this process.

#include <gtest/gtest.h>

#include "ground/store/testing/s3_twin.h"
#include "operate/cli/testing/bucket_checkpoints.h"

namespace systole::cli {
namespace {

class S3Checkpoints : public testing::Test {
 protected:
  Captured run(const std::string& words, const std::string& variables = "") {
    return systole_.shell(
        fmt::format("HOME=\"$PWD\" AWS_ENDPOINT_URL={} AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY='{}' {} "
                    "exec \"$SYSTOLE\" {}",
                    twin_.url(), S3Twin::id(), S3Twin::secret(), variables, words));
  }
  BucketUse bucket() {
    return {systole_, "s3://twin", [this](const std::string& words) { return run(words); },
            [this] { return twin_.requests(); },
            [this](std::int64_t n) {
              twin_.inject({n % 2 == 0 ? S3Fault::Kind::slow_down : S3Fault::Kind::answer_lost, n});
            }};
  }

  S3Twin twin_;
  SystoleRunner systole_;
};

TEST_F(S3Checkpoints, a_killed_run_goes_on_from_the_bucket_to_the_same_numbers) {
  expect_killed_run_goes_on(bucket());
  EXPECT_EQ(twin_.open_uploads(), 0);
}

TEST_F(S3Checkpoints, what_refuses_is_told_before_training) {
  write_job(bucket(), "x");
  const Captured denied = run("run job.yaml --backend reference", "AWS_SECRET_ACCESS_KEY=not-the-one");
  EXPECT_EQ(denied.exit.code, 3) << denied.err;
  EXPECT_NE(denied.err.find("s3://twin"), std::string::npos) << denied.err;
  EXPECT_EQ(denied.err.find("not-the-one"), std::string::npos) << denied.err;
  twin_.region = "eu-west-1";
  const Captured elsewhere = run("run job.yaml --backend reference");
  EXPECT_NE(elsewhere.err.find("the bucket 'twin' is in eu-west-1"), std::string::npos) << elsewhere.err;
  EXPECT_NE(elsewhere.err.find("hint: AWS_REGION=eu-west-1"), std::string::npos) << elsewhere.err;
  EXPECT_EQ(run("run job.yaml --backend reference", "AWS_REGION=eu-west-1").exit.code, 0);
}

}  // namespace
}  // namespace systole::cli
