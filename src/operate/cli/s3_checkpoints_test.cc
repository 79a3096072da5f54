// Checkpoints of a run in S3, through the command line, against its twin in this process.

#include <gtest/gtest.h>

#include <csignal>

#include "ground/store/testing/s3_twin.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

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
  void write(const std::string& folder) {
    systole_.write("job.yaml", replaced(kWorkload, "steps: 4", "steps: 8") +
                                   fmt::format("checkpoint: {{ every: 2, folder: \"s3://twin/{}\" }}\n", folder));
  }

  S3Twin twin_;
  SystoleRunner systole_;
};

TEST_F(S3Checkpoints, a_killed_run_goes_on_from_the_bucket_to_the_same_numbers) {
  write("whole");
  EXPECT_EQ(run("check job.yaml --backend reference").exit.code, 0);
  EXPECT_EQ(twin_.requests(), 0) << "check asks no server";
  const Captured whole = run("run job.yaml --backend reference --folder a");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  write("cut");
  const Captured cut = run("run job.yaml --backend reference --folder b --inject kill=update@7");
  EXPECT_EQ(cut.exit.signal, SIGKILL) << cut.err;
  const Captured listed = run("ckpt list s3://twin/cut");
  EXPECT_EQ(listed.exit.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("\n   4 "), std::string::npos) << listed.out;
  for (std::int64_t n = twin_.requests() + 3; n < twin_.requests() + 60; n += 7)
    twin_.inject({n % 2 == 0 ? S3Fault::Kind::slow_down : S3Fault::Kind::answer_lost, n});
  const Captured on = run("resume b --backend reference");
  ASSERT_EQ(on.exit.code, 0) << on.err;
  const bool goes_on =
      on.err.find("step 4") != on.err.npos || on.err.find("step 6") != on.err.npos;  // as it was killed
  EXPECT_TRUE(goes_on) << on.err;
  EXPECT_EQ(run("ckpt verify b").exit.code, 0);
  const Captured diff = run("ckpt diff s3://twin/whole@8 s3://twin/cut@8");
  EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;
  EXPECT_EQ(twin_.open_uploads(), 0);

  const Captured other = run("run job.yaml --backend reference --folder c");
  EXPECT_EQ(other.exit.code, 1) << other.err;
  EXPECT_NE(other.err.find("'s3://twin/cut' "), std::string::npos) << other.err;
}

TEST_F(S3Checkpoints, what_refuses_is_told_before_training) {
  write("x");
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
