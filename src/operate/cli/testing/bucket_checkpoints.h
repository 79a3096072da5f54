#pragma once
// A run whose checkpoints lie in a bucket is killed and goes on, through the command line, against a bucket's twin.

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {

struct BucketUse {
  SystoleRunner& systole;
  std::string root;                                       // "gs://bucket"
  std::function<Captured(const std::string& words)> run;  // of the program, with the twin's access
  std::function<std::int64_t()> requests;                 // so far
  std::function<void(std::int64_t request)> fails;        // that request is refused, or its answer lost
};

inline void write_job(const BucketUse& bucket, const std::string& folder) {
  bucket.systole.write("job.yaml",
                       replaced(kWorkload, "steps: 4", "steps: 8") +
                           fmt::format("checkpoint: {{ every: 2, folder: \"{}/{}\" }}\n", bucket.root, folder));
}

// One run is whole; one is killed after its checkpoint of step 4 or 6, and goes on while requests fail: both end with
// the same bits. A third run does not take the second's folder.
inline void expect_killed_run_goes_on(const BucketUse& bucket) {
  const auto& run = bucket.run;
  write_job(bucket, "whole");
  EXPECT_EQ(run("check job.yaml --backend reference").exit.code, 0);
  EXPECT_EQ(bucket.requests(), 0) << "check asks no server";
  const Captured whole = run("run job.yaml --backend reference --folder a");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  write_job(bucket, "cut");
  const Captured cut = run("run job.yaml --backend reference --folder b --inject kill=update@7");
  EXPECT_EQ(cut.exit.signal, SIGKILL) << cut.err;
  const Captured listed = run("ckpt list " + bucket.root + "/cut");
  EXPECT_EQ(listed.exit.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("\n   4 "), std::string::npos) << listed.out;
  for (std::int64_t n = bucket.requests() + 3; n < bucket.requests() + 60; n += 7) bucket.fails(n);
  const Captured on = run("resume b --backend reference");
  ASSERT_EQ(on.exit.code, 0) << on.err;
  EXPECT_TRUE(on.err.find("step 4") != on.err.npos || on.err.find("step 6") != on.err.npos) << on.err;
  EXPECT_EQ(run("ckpt verify b").exit.code, 0);
  const Captured diff = run(fmt::format("ckpt diff {0}/whole@8 {0}/cut@8", bucket.root));
  EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;

  const Captured other = run("run job.yaml --backend reference --folder c");
  EXPECT_EQ(other.exit.code, 1) << other.err;
  EXPECT_NE(other.err.find(fmt::format("'{}/cut' ", bucket.root)), std::string::npos) << other.err;
}

}  // namespace systole::cli
