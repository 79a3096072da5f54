// `systole render` as people type it: what it prints, and what it leaves on disk.

#include <gtest/gtest.h>

#include "operate/cli/run_systole.h"

namespace systole::cli {
namespace {

// The catalog is read, asked and gone before the answer is printed: under ASan this is what finds a pointer into it.
TEST(RenderCommand, gke_prints_the_limits_that_it_needs) {
  const SystoleRunner systole;
  systole.write("job.yaml",
                "systole: 1\nname: train\ncommand: python3 train.py\nimage: registry.example/train@sha256:" +
                    std::string(64, 'a') +
                    "\nclaims: { /runs: runs, /data: corpus }\nfolder: /runs\n"
                    "resources: { accelerators: a3-highgpu-8g:2, longest: 2d }\n"
                    "gke: { project: my-lab-7, cluster: train, location: us-central1-a }\n");
  const Captured made = systole.run({"render", "job.yaml", "--on", "gke"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  for (const char* line : {"quota:  GPUS_ALL_REGIONS of the project: 16 GPUs; usually 0 in new projects\n",
                           "quota:  GPUS_PER_GPU_FAMILY (gpu_family=NVIDIA_H100) in us-central1: 16 GPUs; usually 0\n",
                           "quota:  CPUS_PER_VM_FAMILY (vm_family=A3) in us-central1: 416 vCPUs\n",
                           "quota:  LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY (vm_family=A3) in us-central1: 12000 GB\n"})
    EXPECT_NE(made.err.find(line), std::string::npos) << line << made.err;
  EXPECT_TRUE(std::filesystem::exists(systole.folder() / "rendered/gke/cluster.sh"));
  const Captured document = systole.run({"render", "job.yaml", "--on", "gke", "--json"});
  EXPECT_EQ(document.exit.code, 0) << document.err;
  EXPECT_NE(document.out.find("\"metric\": \"GPUS_ALL_REGIONS\""), std::string::npos) << document.out;
}

}  // namespace
}  // namespace systole::cli
