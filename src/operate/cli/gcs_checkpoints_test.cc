// Checkpoints of a run in Cloud Storage, through the command line, against its twin in this process.

#include <gtest/gtest.h>

#include <csignal>

#include "ground/store/testing/gcs_twin.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

class GcsCheckpoints : public testing::Test {
 protected:
  Captured run(const std::string& words) {
    return systole_.shell(fmt::format("exec env STORAGE_EMULATOR_HOST={} \"$SYSTOLE\" {}", twin_.url(), words));
  }
  void write(const std::string& folder) {
    systole_.write("job.yaml", replaced(kWorkload, "steps: 4", "steps: 8") +
                                   fmt::format("checkpoint: {{ every: 2, folder: \"gs://bucket/{}\" }}\n", folder));
  }

  GcsTwin twin_;
  SystoleRunner systole_;
};

TEST_F(GcsCheckpoints, a_killed_run_goes_on_from_the_bucket_to_the_same_numbers) {
  write("whole");
  EXPECT_EQ(run("check job.yaml --backend reference").exit.code, 0);
  EXPECT_EQ(twin_.count(), 0) << "check asks no server";
  const Captured whole = run("run job.yaml --backend reference --folder a");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  write("cut");
  const Captured cut = run("run job.yaml --backend reference --folder b --inject kill=update@7");
  EXPECT_EQ(cut.exit.signal, SIGKILL) << cut.err;
  const Captured listed = run("ckpt list gs://bucket/cut");
  EXPECT_EQ(listed.exit.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("\n   4 "), std::string::npos) << listed.out;
  for (std::int64_t n = twin_.count() + 3; n < twin_.count() + 60; n += 7)
    twin_.inject({n % 2 == 0 ? GcsFault::Kind::unavailable : GcsFault::Kind::reply_lost, n});
  const Captured on = run("resume b --backend reference");
  ASSERT_EQ(on.exit.code, 0) << on.err;
  const bool goes_on =
      on.err.find("step 4") != on.err.npos || on.err.find("step 6") != on.err.npos;  // as it was killed
  EXPECT_TRUE(goes_on) << on.err;
  EXPECT_EQ(run("ckpt verify b").exit.code, 0);
  const Captured diff = run("ckpt diff gs://bucket/whole@8 gs://bucket/cut@8");
  EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;

  const Captured other = run("run job.yaml --backend reference --folder c");
  EXPECT_EQ(other.exit.code, 1) << other.err;
  EXPECT_NE(other.err.find("'gs://bucket/cut' "), std::string::npos) << other.err;
  for (const auto& [name, bytes] : twin_.objects()) EXPECT_EQ(name.find(".systole-"), std::string::npos) << name;
}

TEST_F(GcsCheckpoints, what_refuses_is_told_before_training) {
  write("x");
  twin_.forbids();
  const Captured refused = run("run job.yaml --backend reference");
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("gs://bucket"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("roles/storage.objectUser"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace systole::cli
