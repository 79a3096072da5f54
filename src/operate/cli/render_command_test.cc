// `systole render` as people type it: what it prints, and what it leaves on disk.

#include <gtest/gtest.h>

#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

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

// A project that never asked has less: check says of what, how much, and how to ask.
TEST(RenderCommand, check_tells_the_quotas_that_a_new_project_lacks) {
  const SystoleRunner systole;
  const auto job = [&](const std::string& resources) {
    systole.write("job.yaml", "systole: 1\nname: train\ncommand: [/bin/true]\nimage: registry.example/train@sha256:" +
                                  std::string(64, 'a') +
                                  "\nclaims: { /runs: runs }\nfolder: /runs\nresources: { longest: 2d, " + resources +
                                  " }\nranks: { notice: 10s }\n"
                                  "gke: { project: my-lab-7, cluster: train, location: us-central1-a }\n");
    const Captured seen = systole.run({"check", "job.yaml"});
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    return seen.err;
  };
  const std::string gpus = job("accelerators: 'a3-highgpu-8g:2'");
  for (const char* line :
       {"note: quota: GPUS_ALL_REGIONS of the project: 16 GPUs; usually 0 in new projects\n"
        "  hint: gcloud beta quotas preferences create --service=compute.googleapis.com --project=my-lab-7 "
        "--quota-id=GPUS-ALL-REGIONS-per-project --preferred-value=16 "
        "--email=\"$(gcloud config get-value account)\"\n",
        "note: quota: GPUS_PER_GPU_FAMILY (gpu_family=NVIDIA_H100) in us-central1: 16 GPUs; usually 0\n",
        "--quota-id=GPUS-PER-GPU-FAMILY-per-project-region --dimensions=region=us-central1,gpu_family=NVIDIA_H100 "
        "--preferred-value=16 "})
    EXPECT_NE(gpus.find(line), std::string::npos) << line << gpus;
  EXPECT_EQ(gpus.find("SSD_TOTAL_GB"), std::string::npos) << "300 GB is no more than is usual: " << gpus;
  const std::string document = systole.run({"check", "job.yaml", "--json"}).out;
  EXPECT_NE(document.find("GPUS_ALL_REGIONS of the project"), std::string::npos) << document;
  // Spot spends limits of its own, of which a new project may have some.
  const std::string spot = job("accelerators: 't4:4', provisioning: spot, threads: 4, memory: 16GiB");
  EXPECT_NE(spot.find("note: quota: PREEMPTIBLE_NVIDIA_T4_GPUS in us-central1: 4 GPUs; usually 0 to 1\n"),
            std::string::npos)
      << spot;
  EXPECT_EQ(spot.find("GPUS_ALL_REGIONS"), std::string::npos) << spot;
  EXPECT_EQ(job("accelerators: 'v6e:2x2', provisioning: spot").find("quota:"), std::string::npos) << "4 of 1536";
}

TEST(RenderCommand, check_tells_the_quotas_of_machines_alone) {
  const SystoleRunner systole;
  systole.write("vm.yaml",
                "systole: 1\nname: vm\nworkload: machines\nresources: { accelerators: 'a2-highgpu-4g:1' }\n"
                "gcloud: { create: instances, name: vm, zone: us-central1-a, machine: a2-highgpu-4g }\n");
  const Captured seen = systole.run({"check", "vm.yaml"});
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.err.find("note: quota: NVIDIA_A100_GPUS in us-central1: 4 GPUs; usually 0\n"), std::string::npos)
      << seen.err;
  EXPECT_NE(seen.err.find("--project=\"$(gcloud config get-value project)\""), std::string::npos) << seen.err;
  const Captured rendered = systole.run({"render", "vm.yaml", "--on", "gcloud", "--dry-run"});
  EXPECT_NE(rendered.err.find("quota:  NVIDIA_A100_GPUS in us-central1: 4 GPUs; usually 0\n"), std::string::npos)
      << rendered.err;
  systole.write("bad.yaml",
                "systole: 1\nname: vm\nworkload: machines\nresources: { accelerators: 'h100:8' }\n"
                "gcloud: { create: instances, name: vm, zone: us-central1-a, machine: a2-highgpu-4g }\n");
  const Captured refused = systole.run({"check", "bad.yaml"});
  EXPECT_EQ(refused.exit.code, 2) << "what render refuses, check refuses: " << refused.out;
  EXPECT_NE(refused.err.find("the command makes a2-highgpu-4g:1"), std::string::npos) << refused.err;
}

constexpr const char* kProgram = "systole: 1\nname: mine\ncommand: [/bin/true]\n";

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RenderCommand, a_secret_in_env_is_refused_and_shown_nowhere) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kProgram) + "env: { MODE: fast, HF_TOKEN: hunter2 }\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"check", "job.yaml"}, {"render", "job.yaml", "--on", "slurm"}, {"run", "job.yaml"}}) {
    const Captured refused = systole.run(words);
    EXPECT_EQ(refused.exit.code, 2) << words[0];
    EXPECT_TRUE(says(refused.err, "job.yaml:4: error: env: HF_TOKEN is a secret")) << refused.err;
    EXPECT_FALSE(says(refused.out + refused.err, "hunter2")) << refused.err;
  }
  // The hint is what to type.
  systole.write("job.yaml", std::string(kProgram) + "env: { MODE: fast }\nsecrets: { HF_TOKEN: 'env:HF_TOKEN' }\n");
  EXPECT_EQ(systole.run({"check", "job.yaml"}).exit.code, 0);
}

// What a workload says of a cluster is held to that cluster.
TEST(RenderCommand, check_refuses_what_render_refuses) {
  const SystoleRunner systole;
  const struct {
    const char *keys, *on, *said;
    int code = 2;
  } kWrong[] = {
      {"gke: { project: my-lab-7, cluster: train }\n", "gke", "gke.location: '' is neither a zone nor a region"},
      {"kubernetes: { queue: research }\n", "kubernetes", "image: a pod needs one"},
      {"claims: { /data: corpus }\nimage: x:latest\n", "kubernetes", "image: "},
      {"slurm: { partition: gpu }\nclaims: { /data: corpus }\n", "slurm", "claims", 3},
      {"ssh: { hosts: [node1] }\nresources: { nodes: 2 }\n", "ssh", "ssh.hosts"},
      {"resources: { accelerators: h1000 }\n", "slurm", "h1000"},
  };
  for (const auto& [keys, on, said, code] : kWrong) {
    systole.write("job.yaml", std::string(kProgram) + keys);
    const Captured rendered = systole.run({"render", "job.yaml", "--on", on});
    EXPECT_EQ(rendered.exit.code, code) << keys << rendered.err;
    const Captured checked = systole.run({"check", "job.yaml"});
    EXPECT_EQ(checked.exit.code, 2) << keys << checked.out;
    EXPECT_TRUE(says(rendered.err, said)) << rendered.err;
    EXPECT_TRUE(says(checked.err, said) && says(checked.err, std::string("(render --on ") + on + ")")) << checked.err;
    EXPECT_TRUE(says(checked.err, "job.yaml")) << checked.err;
  }
  for (const char* keys : {"", "slurm: { partition: gpu }\nresources: { nodes: 2 }\n", "image: x@sha256:0\n",
                           "ssh: { hosts: [node1, node2] }\n"}) {
    systole.write("job.yaml", std::string(kProgram) + keys);
    EXPECT_EQ(systole.run({"check", "job.yaml"}).exit.code, 0) << keys;
  }
}

TEST(RenderCommand, loses_no_files_of_others) {
  const SystoleRunner systole;
  systole.write("a.yaml", "systole: 1\nname: a\ncommand: [/bin/true]\n");
  systole.write("b.yaml", "systole: 1\nname: b\ncommand: [/bin/true]\n");
  const auto render = [&](const char* file, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"render", file, "--on", "slurm"});
    return systole.run(more);
  };
  const auto text = [&](const char* file) { return read_text_file((systole.folder() / file).string()).value(); };
  ASSERT_EQ(render("a.yaml").exit.code, 0);
  const std::string first = text("rendered/slurm/job.sbatch");
  const Captured other = render("b.yaml");
  EXPECT_EQ(other.exit.code, 1);
  EXPECT_TRUE(says(other.err, "rendered/slurm holds the files of the run 'a'")) << other.err;
  EXPECT_TRUE(says(other.err, "--out rendered/slurm-b, or --replace")) << other.err;
  EXPECT_EQ(text("rendered/slurm/job.sbatch"), first);
  EXPECT_EQ(render("b.yaml", {"--out", "rendered/slurm-b"}).exit.code, 0) << "the hint";
  // The same run again: what changed is told, and what is no longer part of it goes.
  const Captured again = render("a.yaml", {"--set", "slurm.partition=gpu"});
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_TRUE(says(again.err, "replaced: ") && says(again.err, "job.sbatch")) << again.err;
  EXPECT_FALSE(says(render("a.yaml", {"--set", "slurm.partition=gpu"}).err, "replaced: "));
  // Edited by hand.
  systole.write("rendered/slurm/job.sbatch", text("rendered/slurm/job.sbatch") + "# mine\n");
  const Captured edited = render("a.yaml");
  EXPECT_EQ(edited.exit.code, 1);
  EXPECT_TRUE(says(edited.err, "rendered/slurm/job.sbatch was edited since it was rendered")) << edited.err;
  EXPECT_TRUE(says(text("rendered/slurm/job.sbatch"), "# mine"));
  EXPECT_EQ(render("a.yaml", {"--replace"}).exit.code, 0);
  EXPECT_EQ(text("rendered/slurm/job.sbatch"), first);
  // Never written by render.
  systole.write("own/job.sbatch", "mine\n");
  const Captured own = render("a.yaml", {"--out", "own"});
  EXPECT_EQ(own.exit.code, 1);
  EXPECT_TRUE(says(own.err, "own/job.sbatch is there, and render did not write it")) << own.err;
  EXPECT_EQ(text("own/job.sbatch"), "mine\n");
}

TEST(RenderCommand, a_rendering_leaves_none_of_the_one_before) {
  const SystoleRunner systole;
  const std::string gke = std::string(kProgram) + "image: registry.example/x@sha256:" + std::string(64, 'a') +
                          "\ngke: { project: my-lab-7, cluster: train, location: us-central1-a }\n";
  systole.write("job.yaml", gke + "resources: { accelerators: 'a3-highgpu-8g:2' }\n");
  ASSERT_EQ(systole.run({"render", "job.yaml", "--on", "gke"}).exit.code, 0);
  ASSERT_TRUE(std::filesystem::exists(systole.folder() / "rendered/gke/networks.yaml"));
  systole.write("job.yaml", gke + "resources: { accelerators: 'a3-highgpu-8g:1' }\n");
  const Captured again = systole.run({"render", "job.yaml", "--on", "gke"});
  EXPECT_TRUE(says(again.err, "removed: networks.yaml, of the files before")) << again.err;
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "rendered/gke/networks.yaml"));
}

// A submission that failed leaves no run to name.
TEST(RenderCommand, stop_names_no_run_that_was_never_submitted) {
  const SystoleRunner systole;
  std::filesystem::create_directories(systole.folder() / "runs/.submitted/bert");
  const Captured stopped = systole.run({"stop", "bret"});
  EXPECT_EQ(stopped.exit.code, 2);
  EXPECT_TRUE(says(stopped.err, "no run 'bret' was submitted from here")) << stopped.err;
  EXPECT_FALSE(says(stopped.err, "bert")) << stopped.err;
}

}  // namespace
}  // namespace systole::cli
