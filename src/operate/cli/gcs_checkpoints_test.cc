// Checkpoints of a run in Cloud Storage, through the command line, against its twin in this process.

#include <gtest/gtest.h>

#include "ground/store/testing/gcs_twin.h"
#include "operate/cli/testing/bucket_checkpoints.h"

namespace systole::cli {
namespace {

class GcsCheckpoints : public testing::Test {
 protected:
  Captured run(const std::string& words) {
    return systole_.shell(fmt::format("exec env STORAGE_EMULATOR_HOST={} \"$SYSTOLE\" {}", twin_.url(), words));
  }
  BucketUse bucket() {
    return {systole_, "gs://bucket", [this](const std::string& words) { return run(words); },
            [this] { return twin_.count(); },
            [this](std::int64_t n) {
              twin_.inject({n % 2 == 0 ? GcsFault::Kind::unavailable : GcsFault::Kind::reply_lost, n});
            }};
  }

  GcsTwin twin_;
  SystoleRunner systole_;
};

TEST_F(GcsCheckpoints, a_killed_run_goes_on_from_the_bucket_to_the_same_numbers) {
  expect_killed_run_goes_on(bucket());
  for (const auto& [name, bytes] : twin_.objects()) EXPECT_EQ(name.find(".systole-"), std::string::npos) << name;
}

TEST_F(GcsCheckpoints, what_refuses_is_told_before_training) {
  write_job(bucket(), "x");
  twin_.forbids();
  const Captured refused = run("run job.yaml --backend reference");
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("gs://bucket"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("roles/storage.objectUser"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace systole::cli
