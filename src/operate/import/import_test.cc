// Scripts and lines of other launchers as workloads: keys, reports, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "operate/import/flags.h"
#include "operate/import/slurm_flags.h"
#include "operate/import/testing/imported.h"
#include "operate/render/quote.h"
#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

const std::string kSource = SYSTOLE_SOURCE_DIR;

TEST(ImportTorchx, takes_a_whole_line) {
  const std::string line = R"(torchx run \
  -s kubernetes \
  -cfg namespace=research,queue=default \
  dist.ddp \
  -j 2x8 \
  --gpu 8 \
  --cpu 96 \
  --memMB 1300000 \
  --script train_dlrm.py \
  -- \
  --num_embeddings_per_feature "40000000,39060" \
  --embedding_dim 128 \
  --dense_arch_layer_sizes "512,256,128" \
  --over_arch_layer_sizes "1024,1" \
  --batch_size 2048 \
  --learning_rate 1.0 \
  --dataset_path /mnt/filestore/criteo/
)";
  const Workload w = workload_of(line);
  EXPECT_EQ(w.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(w.resources.gpus_per_node, 8);
  EXPECT_EQ(w.resources.ranks_per_node.value_or(8), 8);
  EXPECT_EQ(*w.resources.threads * 8, 96);
  EXPECT_EQ(w.resources.memory, Bytes(1'300'000'000'000));
  EXPECT_EQ(w.kubernetes.name_space, "research");
  EXPECT_EQ(w.name, "train_dlrm");
  // The program's own flags stay its arguments.
  EXPECT_EQ(w.command, (Words{"python3", "-u", "train_dlrm.py", "--num_embeddings_per_feature", "40000000,39060",
                              "--embedding_dim", "128", "--dense_arch_layer_sizes", "512,256,128",
                              "--over_arch_layer_sizes", "1024,1", "--batch_size", "2048", "--learning_rate", "1.0",
                              "--dataset_path", "/mnt/filestore/criteo/"}));
  EXPECT_TRUE(tells(imported(line), "-cfg queue=default"));
}

TEST(ImportTorchx, counts_ranks_without_gpus) {
  const Workload w =
      workload_of("torchx run --scheduler slurm dist.ddp -j 2x8 --cpu 96 --memMB 1300000 --script train.py");
  EXPECT_EQ(w.resources.ranks_per_node, 8);
  EXPECT_EQ(w.resources.threads, 12);
  EXPECT_FALSE(w.resources.gpus_per_node.has_value());
  EXPECT_EQ(refused("torchx run utils.echo --msg x").substr(0, 56),
            "torchx run utils.echo: only dist.ddp is known here | pas");
}

TEST(ImportTorchx, mounts_are_volumes) {
  const std::string line =
      "torchx run -s kubernetes -cfg namespace=a,priority_class=high dist.ddp -j 1x8 --mounts "
      "type=volume,src=corpus,dst=/data,readonly,type=volume,src=runs,dst=/runs,type=bind,src=/scratch,dst=/s "
      "--script train.py";
  const Workload w = workload_of(line);
  ASSERT_EQ(w.volumes.size(), 2U);
  EXPECT_EQ(w.volumes.at("/data"), (VolumeSpec{.of = "corpus", .read_only = true}));
  EXPECT_EQ(w.volumes.at("/runs"), VolumeSpec{.of = "runs"});
  EXPECT_NE(why(imported(line), "type=bind,src=/scratch,dst=/s").find("a folder of its nodes"), std::string::npos);
  EXPECT_NE(why(imported(line), "priority_class=high").find("kubernetes.priority"), std::string::npos);
  EXPECT_NE(
      refused("torchx run dist.ddp -j 1x1 --mounts type=volume,dst=/data --script t.py").find("no mount of torchx"),
      std::string::npos);
}

// Slurm's unit.
TEST(ImportTorchx, time_of_slurm_is_the_longest) {
  for (const auto& [time, seconds] : {std::pair("1:00:00", 3600.0), std::pair("90", 5400.0), std::pair("2-12", 216e3)})
    EXPECT_EQ(
        workload_of(fmt::format("torchx run -s slurm -cfg partition=p,time={} dist.ddp -j 1x1 --script t.py", time))
            .resources.longest,
        Seconds(seconds))
        << time;
  EXPECT_NE(
      why(imported("torchx run -cfg time=UNLIMITED dist.ddp -j 1x1 --script t.py"), "time=UNLIMITED").find("no limit"),
      std::string::npos);
}

TEST(ImportTorchrun, gives_its_agents_place_to_ours) {
  const std::string line =
      "$ torchrun --nnodes=1:4 --nproc_per_node=8 --rdzv_backend=c10d --rdzv-endpoint=host:29500 "
      "--max-restarts 3 -m my.train --epochs=2 'a b'";
  const Workload w = workload_of(line);
  EXPECT_EQ(w.resources.nodes, (CountRange{1, 4}));
  EXPECT_EQ(w.resources.ranks_per_node, 8);
  EXPECT_EQ(w.command, (Words{"python3", "-u", "-m", "my.train", "--epochs=2", "a b"}));
  for (const char* flag : {"--rdzv_backend", "--rdzv-endpoint", "--max-restarts"})
    EXPECT_TRUE(tells(imported(line), flag)) << flag;
  EXPECT_EQ(workload_of("python3 -m torch.distributed.run --standalone train.py").command,
            (Words{"python3", "-u", "train.py"}));
  EXPECT_EQ(workload_of("torchrun --no-python ./a.out x").command, (Words{"./a.out", "x"}));
  EXPECT_EQ(workload_of("python train.py").command, (Words{"python", "train.py"}));
  EXPECT_EQ(refused("torchrun --nproc-per-nod=8 train.py"),
            "--nproc-per-nod: torchrun has no such flag that is known here | did you mean '--nproc-per-node'?\n");
  EXPECT_NE(refused("torchrun --nproc_per_node=-3 train.py").find("'-3' is no count"), std::string::npos);
  EXPECT_NE(refused("accelerate launch train.py").find("it starts ranks of its own"), std::string::npos);
}

constexpr const char* kScript = R"sh(#!/bin/bash
#SBATCH --job-name=bert
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=200G
#SBATCH --time=1-02:30:00
#SBATCH --partition=gpu --account=lab
#SBATCH --array=0-9%2
#SBATCH --signal=USR1@180
#SBATCH --mail-type=END
#SBATCH --output=%x.log
set -euo pipefail
module load cuda/12
source venv/bin/activate
export NCCL_DEBUG=INFO
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
echo "starting on $(hostname)"
srun --mpi=none python3 train.py --seed "$SLURM_ARRAY_TASK_ID" > train.log 2>&1
wait
)sh";

TEST(ImportSbatch, takes_a_script) {
  const Imported made = imported(kScript);
  const Workload w = workload_of(kScript);
  EXPECT_EQ(w.name, "bert");
  EXPECT_EQ(w.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(w.resources.gpus_per_node, 4);
  EXPECT_FALSE(w.resources.ranks_per_node.has_value()) << "one a GPU is what is meant without it";
  EXPECT_EQ(w.resources.threads, 8);
  EXPECT_EQ(w.resources.memory, Bytes(200 * kGiB.count()));
  EXPECT_EQ(w.resources.longest, Seconds(26.5 * 3600));
  EXPECT_EQ(w.slurm.partition, "gpu");
  EXPECT_EQ(w.slurm.account, "lab");
  EXPECT_EQ(w.slurm.gpu_type, "a100");
  EXPECT_EQ(w.slurm.array, (CountRange{0, 9}));
  EXPECT_EQ(w.slurm.at_once, 2);
  EXPECT_EQ(w.ranks.notice, Seconds(120.0));
  EXPECT_EQ(w.env.at("NCCL_DEBUG"), "INFO");
  EXPECT_FALSE(w.env.contains("MASTER_ADDR"));
  EXPECT_EQ(w.command, (Words{"bash", "-c",
                              "module load cuda/12\nsource venv/bin/activate\n"
                              "exec python3 train.py --seed \"$SLURM_ARRAY_TASK_ID\""}));
  for (const char* what :
       {"--mail-type=END", "--output=%x.log", "MASTER_ADDR", "echo", "--mpi=none", "> train.log", "2>&1", "USR1"})
    EXPECT_TRUE(tells(made, what)) << what << "\n" << made.yaml;
  EXPECT_NE(made.yaml.find("  nodes: 2 # -N 2\n"), std::string::npos) << made.yaml;
  EXPECT_NE(made.yaml.find("#   --mail-type=END: nobody sends mail"), std::string::npos) << made.yaml;
}

TEST(ImportSbatch, counts_in_all_of_slurms_terms) {
  const auto with = [](const std::string& flags) {
    return workload_of("#SBATCH " + flags + "\nsrun python3 train.py\n").resources;
  };
  EXPECT_EQ(with("-N4 --ntasks=8").ranks_per_node, 2);
  EXPECT_EQ(with("--nodes=2 --gpus=16").gpus_per_node, 8);
  EXPECT_EQ(with("--ntasks-per-node=4 --gpus-per-task=2").gpus_per_node, 8);
  EXPECT_EQ(with("--ntasks-per-node=4 --gpus-per-task=2").ranks_per_node, 4);
  EXPECT_EQ(with("--nodes=2-4 --gpus-per-node=8").nodes, (CountRange{2, 4}));
  EXPECT_EQ(with("--cpus-per-task=4 --mem-per-cpu=2G").memory, Bytes(8 * kGiB.count()));
  EXPECT_EQ(with("--gpus-per-node=2 --cpus-per-gpu=6").threads, 6);
  EXPECT_EQ(with("--time=90").longest, Seconds(5400.0));
  EXPECT_EQ(with("--time=90:30").longest, Seconds(5430.0));
  EXPECT_EQ(with("--time=2-12").longest, Seconds(60.0 * 3600));
  EXPECT_EQ(workload_of("sbatch -N2 --gpus-per-node=4 --wrap='srun python3 train.py'").resources.nodes,
            (CountRange{2, 2}));
  EXPECT_NE(refused("#SBATCH -N2\n#SBATCH --nodes=3\nsrun a.py").find("--nodes=3 do not agree"), std::string::npos);
  EXPECT_NE(refused("#SBATCH --nodes=3 --gpus=4\nsrun python3 a.py").find("are not as many on each"),
            std::string::npos);
  EXPECT_NE(refused("sbatch train.sh").find("what that script starts stands in it"), std::string::npos);
  EXPECT_NE(refused("srun python3 a.py\nsrun python3 b.py").find("two programs are started"), std::string::npos);
  EXPECT_NE(refused("if true; then srun a; fi").find("a program of the shell's"), std::string::npos);
  EXPECT_NE(refused("echo hi").find("nothing of it starts a program"), std::string::npos);
}

// Every Slurm option becomes a key, is reported, or is refused; none is ignored.
TEST(ImportSbatch, knows_every_option_of_slurms) {
  const Node tables =
      parse_json(read_text_file(kSource + "/data/schemas/slurm-sbatch-options.json").value(), "f").value();
  int seen = 0;
  for (const char* version : {"24.11.5", "26.05.3"}) {
    for (const Node::Entry& option : tables.find(version)->find("sbatch_options")->entries()) {
      const auto flag = std::ranges::find(sbatch_flags(), option.key, &Flag::name);
      ASSERT_NE(flag, sbatch_flags().end()) << "--" << option.key << " of Slurm " << version;
      const std::string takes = option.value.find("arg")->text();
      EXPECT_EQ(flag->takes == Flag::Takes::value, takes == "required") << option.key;
      if (const Node* letter = option.value.find("short")) {
        EXPECT_EQ(std::string(1, flag->letter), letter->text()) << option.key;
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 220);
}

// Published lines with these flags: each flag becomes a key, an argument of the program, or is reported.
TEST(ImportGcloud, knows_every_flag_of_the_lines_that_people_paste) {
  struct Pasted {
    const char* line;
    std::vector<const char*> told;
  };
  const std::vector<Pasted> lines = {
      {"gcloud compute instances create vm --zone=us-central1-a --machine-type=a2-highgpu-4g "
       "--accelerator=type=nvidia-tesla-a100,count=4 --image-family=pytorch-latest-gpu "
       "--image-project=deeplearning-platform-release --boot-disk-size=200GB --maintenance-policy=TERMINATE "
       "--metadata=\"install-nvidia-driver=True\" --provisioning-model=SPOT --instance-termination-action=STOP",
       {"--zone", "--machine-type", "--image-family", "--image-project", "--boot-disk-size", "--maintenance-policy",
        "--metadata", "--provisioning-model", "--instance-termination-action"}},
      {"gcloud compute tpus tpu-vm create my-tpu --zone=us-central2-b --accelerator-type=v4-8 "
       "--version=tpu-vm-tf-2.14.0",
       {"--zone", "--accelerator-type", "--version"}},
      {"gcloud compute tpus tpu-vm ssh my-tpu --zone=us-central2-b --worker=0", {"--zone", "--worker"}},
      {"gcloud ai custom-jobs list --region=us-central1 --limit=10", {"gcloud ai custom-jobs list"}},
      {"gcloud compute regions describe us-central1 --format=json", {"gcloud compute regions describe"}},
      {"gcloud container clusters create c --zone=z --num-nodes=1 --enable-ip-alias",
       {"gcloud container clusters create", "--zone", "--num-nodes", "--enable-ip-alias"}},
      {"gcloud container node-pools create p --cluster=c --zone=z --machine-type=a2-highgpu-8g --accelerator "
       "type=nvidia-tesla-a100,count=4 --num-nodes=2 --enable-autoscaling --min-nodes=0 --max-nodes=4",
       {"--cluster", "--zone", "--machine-type"}},
      {"gcloud filestore instances create f --zone z --tier HIGH_SCALE_SSD --file-share name=d,capacity=10TB --network "
       "name=default",
       {"--zone", "--tier", "--file-share", "--network"}},
      {"gcloud billing budgets create --billing-account=A --display-name=B --budget-amount=1000USD "
       "--threshold-rule=percent=0.5",
       {"gcloud billing budgets create", "--billing-account", "--display-name", "--budget-amount",
        "--threshold-rule"}}};
  for (const Pasted& pasted : lines) {
    const std::string text =
        std::string(pasted.line) +
        "\npython3 /home/user/train.py --restore_from=/tmp/checkpoint --port=6006 --logdir=/tmp/b\n";
    const Imported made = imported(text);
    for (const char* flag : pasted.told) {
      // In the comment of a key, or with the reason why there is none.
      const bool key = std::regex_search(made.yaml, std::regex("\n[^#\n]+# [^\n]*" + std::string(flag)));
      EXPECT_NE(key, tells(made, flag)) << flag << " of\n" << made.yaml;
    }
    EXPECT_TRUE(notes(made, "--restore_from"));
    EXPECT_TRUE(std::regex_search(made.yaml, std::regex("from: /tmp/checkpoint +# [^\n]*--restore_from"))) << made.yaml;
    const Workload w = workload_of(text);
    EXPECT_EQ(w.resume.from, "/tmp/checkpoint");
    EXPECT_EQ(w.command, (Words{"bash", "-c",
                                "exec python3 /home/user/train.py --restore_from=\"$SYSTOLE_RESUME_FROM\" --port=6006 "
                                "--logdir=/tmp/b"}))
        << "flags of the program stay its words";
  }
  const Workload pool = workload_of(std::string(lines[6].line) + "\ntorchrun --nproc-per-node=4 train.py");
  EXPECT_EQ(pool.resources.nodes, (CountRange{1, 4}));
  EXPECT_EQ(pool.resources.gpus_per_node, 4);
}

TEST(ImportGcloud, takes_a_custom_job) {
  const Workload w = workload_of(
      "gcloud ai custom-jobs create --region=us-central1 --display-name=my-training-job "
      "--worker-pool-spec=machine-type=a2-highgpu-4g,replica-count=2,accelerator-type=NVIDIA_TESLA_A100,"
      "accelerator-count=4,container-image-uri=us-docker.pkg.dev/p/train:v1 "
      "--command='python train.py' --args='--epochs=10,--batch-size=64' --timeout=3600");
  EXPECT_EQ(w.name, "my-training-job");
  EXPECT_EQ(w.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(w.resources.gpus_per_node, 4);
  EXPECT_EQ(w.resources.longest, Seconds(3600.0));
  EXPECT_EQ(w.image, "us-docker.pkg.dev/p/train:v1");
  EXPECT_EQ(w.command, (Words{"python", "train.py", "--epochs=10", "--batch-size=64"}));
}

TEST(ImportVariables, of_the_agents_are_left_out) {
  const std::string line =
      "JAX_DISABLE_JIT=1 JAX_COORDINATOR_ADDRESS=h:1 CUDA_VISIBLE_DEVICES=0 SYSTOLE_RANK=3 python3 train.py";
  EXPECT_EQ(workload_of(line).env, (std::map<std::string, std::string>{{"JAX_DISABLE_JIT", "1"}}));
  EXPECT_TRUE(tells(imported(line), "JAX_COORDINATOR_ADDRESS"));
  EXPECT_EQ(workload_of("N=4\ntorchrun --nproc-per-node=4 train.py --n \"$N\"").command[2],
            "N=4\nexec python3 -u train.py --n \"$N\"");
}

// Any text in a word stays that word of the command, and affects nothing else in the workload.
TEST(ImportHostile, words_stay_words) {
  for (const std::string& text : hostile_texts()) {
    const Workload w =
        workload_of("export X=" + shell_word(text) + "\ntorchrun --nproc-per-node=2 train.py " + shell_word(text));
    EXPECT_EQ(w.command, (Words{"python3", "-u", "train.py", text}));
    EXPECT_EQ(w.env.at("X"), text);
    EXPECT_EQ(w.resources.ranks_per_node, 2);
    // In a flag that is reported, it is within a comment.
    const Workload told = workload_of("torchrun --rdzv-id " + shell_word(text) + " train.py");
    EXPECT_EQ(told.command, (Words{"python3", "-u", "train.py"})) << text;
    EXPECT_TRUE(told.env.empty());
    const Result<Imported> named =
        import_job({"#SBATCH --job-name=" + shell_word(text) + "\nsrun python3 a.py\n", "f"});
    if (named.ok()) { EXPECT_EQ(read_workload(named->yaml, "f").value().command, (Words{"python3", "a.py"})) << text; }
  }
}

TEST(ImportBadInput, is_told_all_at_once) {
  EXPECT_NE(refused("").find("there is nothing in it"), std::string::npos);
  EXPECT_NE(refused(std::string("a\0b", 3)).find("NUL"), std::string::npos);
  const std::string two = refused("#SBATCH --nodez=2\n#SBATCH --ntaskz=3\nsrun python3 a.py");
  EXPECT_NE(two.find("--nodez"), std::string::npos);
  EXPECT_NE(two.find("--ntaskz"), std::string::npos);
}

}  // namespace
}  // namespace systole
