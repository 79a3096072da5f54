// `systole render` as users type it: its output and its files.

#include <gtest/gtest.h>

#include "describe/spec/job_target_table.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

// The catalog is destroyed before the answer is printed: ASan would find a pointer into it.
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

// The examples, as the guide renders them.
TEST(RenderCommand, servers_go_to_both_kinds_of_clusters) {
  const SystoleRunner systole;
  const std::string examples = SYSTOLE_SOURCE_DIR "/examples/";
  const std::vector<std::string> gke = {"--set", "serve.from=/models/llama3.1-8b",
                                        "--set", "serve.replicas=3:6",
                                        "--set", "resources.accelerators=h100:1",
                                        "--set", "resources.provisioning=spot",
                                        "--set", "image=registry.example/systole:1",
                                        "--set", "volumes={/models: {bucket: my-models, read_only: true}}",
                                        "--set", "gke={project: my-lab-7, cluster: serve, location: us-central1-a}"};
  std::vector<std::string> words = {"render", examples + "serve-8b.yaml", "--on", "gke"};
  words.insert(words.end(), gke.begin(), gke.end());
  const Captured made = systole.run(words);
  ASSERT_EQ(made.exit.code, 0) << made.err;
  for (const char* file : {"serve.yaml", "cluster.sh", "cluster.tf", "undo.sh"})
    EXPECT_TRUE(std::filesystem::exists(systole.folder() / "rendered/gke" / file)) << file;
  EXPECT_NE(made.err.find("apply --server-side -f rendered/gke/serve.yaml\n"), std::string::npos) << made.err;
  const std::string pool = read_text_file((systole.folder() / "rendered/gke/cluster.sh").string()).value();
  for (const char* option : {"--min-nodes=3", "--max-nodes=7", "--spot"})
    EXPECT_NE(pool.find(option), std::string::npos) << option;

  const Captured small =
      systole.run({"render", examples + "serve-small.yaml", "--on", "kubernetes", "--set", "serve.from=/runs/gpt2",
                   "--set", "serve.replicas=2", "--set", "resources={threads: 4, memory: 4GiB}", "--set",
                   "image=registry.example/systole:1", "--set", "claims={/runs: runs}"});
  ASSERT_EQ(small.exit.code, 0) << small.err;
  EXPECT_NE(small.err.find("start: kubectl apply --server-side -f rendered/kubernetes/serve.yaml\n"), std::string::npos)
      << small.err;
  const Captured bare = systole.run({"render", examples + "serve-small.yaml", "--on", "kubernetes"});
  EXPECT_EQ(bare.exit.code, 2);
  EXPECT_NE(bare.err.find("serve.replicas: nothing says how many servers there are"), std::string::npos) << bare.err;
  EXPECT_EQ(systole.run({"render", examples + "serve-small.yaml", "--on", "gcloud"}).exit.code, 3);
}

TEST(RenderCommand, servers_go_to_machines_without_kubernetes) {
  const SystoleRunner systole;
  const auto render = [&](const char* target, const std::string& more) {
    const Captured made = systole.run({"render", SYSTOLE_SOURCE_DIR "/examples/serve-small.yaml", "--on", target,
                                       "--set", "serve.from=/models/gpt2", "--set", more});
    EXPECT_EQ(made.exit.code, 0) << made.err;
    return made.err;
  };
  for (const auto& [target, more, line] :
       {std::tuple("slurm", "resources.longest=1d", "start: sbatch rendered/slurm/serve.sbatch\n"),
        std::tuple("ssh", "ssh.hosts=[node1, node2]", "start: sh rendered/ssh/serve.sh start\n"),
        std::tuple("docker", "image=registry.example/server:1",
                   "docker compose --file rendered/docker/compose.yaml up --detach --wait\n")}) {
    const std::string said = render(target, more);
    EXPECT_NE(said.find(line), std::string::npos) << said;
  }
  const Captured bare = systole.run({"render", SYSTOLE_SOURCE_DIR "/examples/serve-small.yaml", "--on", "slurm"});
  EXPECT_EQ(bare.exit.code, 2);
  EXPECT_NE(bare.err.find("serve.from: nothing says where the model is on the machines"), std::string::npos)
      << bare.err;
}

// A new project has lower quotas: check reports which, how much is needed, and how to request more.
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
  // Spot has its own quotas. A new project's quota of T4s is unknown.
  EXPECT_EQ(job("accelerators: 't4:4', provisioning: spot, threads: 4, memory: 16GiB").find("quota:"),
            std::string::npos);
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
  systole.write("spot.yaml",
                "systole: 1\nname: vm\nworkload: machines\nresources: { nodes: 400, provisioning: spot }\n"
                "gcloud: { create: instances, name: vm, zone: us-east5-b, machine: ct6e-standard-4t }\n");
  const std::string spot = systole.run({"check", "spot.yaml"}).err;
  EXPECT_NE(spot.find("note: quota: PREEMPTIBLE_TPU_V6E in us-east5: 1600 chips; usually 1536\n"), std::string::npos)
      << spot;
  EXPECT_EQ(spot.find("TPUS_PER_TPU_FAMILY"), std::string::npos) << spot;
  systole.write("anywhere.yaml",
                "systole: 1\nname: vm\nworkload: machines\nresources: { accelerators: 'a2-highgpu-4g:1' }\n"
                "gcloud: { create: instances, name: vm, machine: a2-highgpu-4g }\n");
  const std::string anywhere = systole.run({"check", "anywhere.yaml"}).err;
  EXPECT_NE(anywhere.find("note: quota: NVIDIA_A100_GPUS in REGION: 4 GPUs; usually 0\n"), std::string::npos)
      << anywhere;
  EXPECT_NE(anywhere.find(" --dimensions=region=REGION --preferred-value=4 "), std::string::npos) << anywhere;
  systole.write("bad.yaml",
                "systole: 1\nname: vm\nworkload: machines\nresources: { accelerators: 'h100:8' }\n"
                "gcloud: { create: instances, name: vm, zone: us-central1-a, machine: a2-highgpu-4g }\n");
  const Captured refused = systole.run({"check", "bad.yaml"});
  EXPECT_EQ(refused.exit.code, 2) << "what render refuses, check refuses: " << refused.out;
  EXPECT_NE(refused.err.find("the command makes a2-highgpu-4g:1"), std::string::npos) << refused.err;
}

// GKE's node counts are per zone of a pool.
TEST(RenderCommand, check_tells_the_quotas_of_nodes_in_each_zone) {
  const SystoleRunner systole;
  const auto told = [&](const std::string& create, const std::string& more) {
    systole.write("nodes.yaml",
                  "systole: 1\nname: a\nworkload: machines\nresources: { nodes: 2 }\n"
                  "gcloud: { name: a, machine: a2-highgpu-1g, create: " +
                      create + ", " + more + " }\n");
    const Captured seen = systole.run({"check", "nodes.yaml"});
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    return seen.err;
  };
  for (const char* create : {"cluster", "node-pool"}) {
    const std::string zone = told(create, "zone: us-central1-a");
    EXPECT_NE(zone.find("NVIDIA_A100_GPUS in us-central1: 2 GPUs; usually 0\n"), std::string::npos) << zone;
    const std::string zones =
        told(create, "zone: us-central1, options: { node-locations: 'us-central1-a,us-central1-c' }");
    EXPECT_NE(zones.find("NVIDIA_A100_GPUS in us-central1: 4 GPUs; usually 0\n"), std::string::npos) << zones;
    EXPECT_NE(zones.find(" --preferred-value=4 "), std::string::npos) << zones;
    const std::string region = told(create, "zone: us-central1");
    EXPECT_NE(region.find("NVIDIA_A100_GPUS in us-central1: 2 GPUs in each zone; usually 0\n"), std::string::npos)
        << region;
    EXPECT_NE(region.find(" --preferred-value=$((2 * ${ZONES:?})) "), std::string::npos) << region;
  }
}

// For gke, the machine is that of its pools.
TEST(RenderCommand, check_tells_the_quotas_of_the_machine_that_the_command_names) {
  const SystoleRunner systole;
  const auto asked = [&](const std::string& create) {
    systole.write("one.yaml",
                  "systole: 1\nname: a\nworkload: machines\ngke: { machine: a2-highgpu-1g }\n"
                  "gcloud: { name: a, zone: us-central1-a, create: " +
                      create + " }\n");
    const Captured rendered = systole.run({"render", "one.yaml", "--on", "gcloud", "--dry-run"});
    EXPECT_EQ(rendered.exit.code, 0) << rendered.err;
    return std::pair(rendered.out.find("--machine-type=a2-highgpu-1g") != std::string::npos,
                     rendered.err.find("quota:  NVIDIA_A100_GPUS in us-central1: 1 GPU;") != std::string::npos);
  };
  EXPECT_EQ(asked("node-pool"), std::pair(true, true));
  EXPECT_EQ(asked("instances"), std::pair(false, false));
  EXPECT_EQ(asked("cluster"), std::pair(false, false));
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
  // The hint is the option to type.
  systole.write("job.yaml", std::string(kProgram) + "env: { MODE: fast }\nsecrets: { HF_TOKEN: 'env:HF_TOKEN' }\n");
  EXPECT_EQ(systole.run({"check", "job.yaml"}).exit.code, 0);
}

// A workload's keys of a cluster are checked against that cluster.
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

// What a target cannot do is refused with the reason in the table of targets, by `check` too.
TEST(RenderCommand, refuses_what_the_table_of_targets_says_it_cannot_do) {
  const SystoleRunner systole;
  const struct {
    const char *keys, *on, *said, *hint;
  } kWrong[] = {
      {"slurm: { array: 0:3 }\nssh: { hosts: [node1] }\n", "ssh", "slurm.array: plain machines have none",
       "hint: --on slurm; or a run a seed: --set train.seed=N --run NAME-N"},
      {"slurm: { array: 0:3 }\nkubernetes: { namespace: ml }\n", "kubernetes", "slurm.array: a Job here is one run",
       "hint: --on slurm; or "},
      {"slurm: { partition: gpu }\nresources: { provisioning: spot }\n", "slurm",
       "resources.provisioning: the machines of a Slurm cluster are there already",
       "hint: --on kubernetes or gke; or take resources.provisioning out"},
      {"slurm: { partition: gpu }\nresources: { accelerators: 'v5e:4x4' }\n", "slurm", "Slurm has no TPUs here",
       "hint: --on kubernetes or gke or ssh; or other accelerators"},
  };
  for (const auto& [keys, on, said, hint] : kWrong) {
    systole.write("job.yaml", std::string(kProgram) + keys);
    const Captured rendered = systole.run({"render", "job.yaml", "--on", on});
    EXPECT_EQ(rendered.exit.code, 3) << keys << rendered.err;
    const Captured checked = systole.run({"check", "job.yaml"});
    EXPECT_NE(checked.exit.code, 0) << keys << checked.out;
    for (const std::string& text : {rendered.err, checked.err})
      EXPECT_TRUE(says(text, said) && says(text, hint)) << keys << text;
  }
  // Machines that gcloud makes have its terms; ssh starts what runs on them. On demand is what is there.
  for (const char* keys : {"resources: { provisioning: spot }\ngcloud: { create: instances, name: vm, zone: "
                           "us-central1-a, machine: g2-standard-4 }\n",
                           "resources: { provisioning: on-demand }\n"}) {
    systole.write("job.yaml", std::string(kProgram) + "ssh: { hosts: [node1] }\n" + keys);
    const Captured rendered = systole.run({"render", "job.yaml", "--on", "ssh"});
    EXPECT_EQ(rendered.exit.code, 0) << keys << rendered.err;
    EXPECT_TRUE(says(rendered.err, "resources.provisioning: the machines of ssh are there already; it is not used"))
        << rendered.err;
  }
}

TEST(RenderCommand, commands_refuse_a_target_without_their_ability) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kProgram) + "ssh: { hosts: [node1] }\n");
  const Captured after = systole.run({"submit", "job.yaml", "--on", "ssh", "--after", "other"});
  EXPECT_EQ(after.exit.code, 3) << after.err;
  EXPECT_TRUE(says(after.err, "--after: nothing on plain machines waits for another job")) << after.err;
  EXPECT_TRUE(says(after.err, "hint: --on slurm; or systole logs -f RUN waits for one")) << after.err;
  const Captured context = systole.run({"submit", "job.yaml", "--on", "ssh", "--context", "lab"});
  EXPECT_EQ(context.exit.code, 3) << context.err;
  EXPECT_TRUE(says(context.err, "--context: plain machines are named by `ssh.hosts`")) << context.err;
  EXPECT_TRUE(says(context.err, "hint: --on kubernetes; or leave --context out")) << context.err;
  const Captured runs = systole.run({"runs", "--on", "slurm"});
  EXPECT_EQ(runs.exit.code, 3) << runs.err;
  EXPECT_TRUE(says(runs.err, "--on: Slurm keeps no record of where a run was submitted")) << runs.err;
  EXPECT_TRUE(says(runs.err, "hint: --on kubernetes; or ")) << runs.err;
}

TEST(RenderCommand, renders_the_example_of_each_target) {
  const SystoleRunner systole;
  for (const JobTargetRow& target : job_target_table()) {
    systole.write("job.yaml", target.example);
    const Captured rendered = systole.run({"render", "job.yaml", "--on", target.name});
    EXPECT_EQ(rendered.exit.code, 0) << target.name << rendered.err;
    const Captured checked = systole.run({"check", "job.yaml"});
    EXPECT_EQ(checked.exit.code, 0) << target.name << checked.err;
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
  // Rendering again reports changed files, and removes stale ones.
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
  // Not written by render.
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

// A failed submission leaves no run.
TEST(RenderCommand, stop_names_no_run_that_was_never_submitted) {
  const SystoleRunner systole;
  std::filesystem::create_directories(systole.folder() / "runs/.submitted/bert");
  const Captured stopped = systole.run({"stop", "bret"});
  EXPECT_EQ(stopped.exit.code, 2);
  EXPECT_TRUE(says(stopped.err, "no run 'bret' was submitted from here")) << stopped.err;
  EXPECT_FALSE(says(stopped.err, "bert")) << stopped.err;
}

// What nobody asked for is not refused: a workload on TPUs may run where there are some.
TEST(RenderCommand, check_names_no_target_that_was_not_asked_for) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kProgram) + "resources: { accelerators: 'v5e:2x2' }\n");
  const Captured checked = systole.run({"check", "job.yaml"});
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
}

constexpr const char* kOnGke = "gke: { project: my-lab-7, cluster: train, location: us-central1-a }\nimage: a/b:1\n";

// gke makes its machines, so the catalog's price is theirs, and a budget buys time at it.
TEST(RenderCommand, a_budget_on_gke_is_of_the_price_in_the_catalog) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kProgram) + kOnGke + "resources: { accelerators: a2-highgpu-1g:2 }\n");
  const Captured priced = systole.run({"render", "job.yaml", "--on", "gke"});
  ASSERT_EQ(priced.exit.code, 0) << priced.err;
  EXPECT_TRUE(says(priced.err, "/h on demand")) << priced.err;
  const Captured bounded =
      systole.run({"render", "job.yaml", "--on", "gke", "--replace", "--set", "objective.budget=100", "--set",
                   "folder=/runs", "--set", "claims={/runs: runs}"});
  EXPECT_EQ(bounded.exit.code, 0) << bounded.err;
}

TEST(RenderCommand, a_machine_that_is_not_had_on_demand_has_no_price_so_and_a_warning) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kProgram) + kOnGke + "resources: { accelerators: a3-highgpu-1g:1 }\n");
  const Captured rendered = systole.run({"render", "job.yaml", "--on", "gke"});
  EXPECT_EQ(rendered.exit.code, 0) << rendered.err;
  EXPECT_TRUE(says(rendered.err, "unknown on demand: it is not had on demand, only by ")) << rendered.err;
  EXPECT_TRUE(says(rendered.err, "resources.provisioning: a3-highgpu-1g: it is not had on demand")) << rendered.err;
  const Captured spot = systole.run({"render", "job.yaml", "--on", "gke", "--out", "spot", "--set",
                                     "resources.provisioning=spot", "--set", "ranks.notice=10s"});
  EXPECT_EQ(spot.exit.code, 0) << spot.err;
  EXPECT_FALSE(says(spot.err, "resources.provisioning: a3-highgpu-1g")) << spot.err;
}

}  // namespace
}  // namespace systole::cli
