// Spellings that sbatch accepts, and their results; lines that it refuses.
#include <gtest/gtest.h>

#include "operate/import/testing/imported.h"

namespace systole {
namespace {

std::string script(const std::string& options) { return "#!/bin/bash\n#SBATCH " + options + "\npython3 train.py\n"; }

TEST(ImportSlurm, reads_sizes_as_slurm_does) {
  const std::int64_t gib = kGiB.count();
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::int64_t>>{{"64G", 64 * gib},
                                                                                     {"64GB", 64 * gib},
                                                                                     {"64gb", 64 * gib},
                                                                                     {"64GiB", 64 * gib},
                                                                                     {"64g", 64 * gib},
                                                                                     {"16000MB", 16000 * (gib >> 10)},
                                                                                     {"16000", 16000 * (gib >> 10)},
                                                                                     {"1TB", gib << 10},
                                                                                     {"1T", gib << 10},
                                                                                     {"4194304K", 4 * gib},
                                                                                     {"4194304kb", 4 * gib}}) {
    EXPECT_EQ(workload_of(script("--mem=" + text)).resources.memory, Bytes(bytes)) << text;
    EXPECT_EQ(workload_of(script("--cpus-per-task=2 --mem-per-cpu=" + text)).resources.memory, Bytes(2 * bytes));
    EXPECT_EQ(workload_of(script("--gpus-per-node=2 --mem-per-gpu=" + text)).resources.memory, Bytes(2 * bytes));
  }
  for (const char* text : {"64GG", "64GBs", "1.5G", "G", "-4G", "64X", "9000000000P", "64iB"})
    EXPECT_NE(refused(script(std::string("--mem=") + text)).find("no size"), std::string::npos) << text;
  EXPECT_TRUE(tells(imported(script("--mem=0")), "--mem=0"));
}

struct Gpus {
  const char* options;
  std::int64_t count;
  const char* type;
};

TEST(ImportSlurm, reads_gpus_in_every_form) {
  for (const Gpus& each : {Gpus{"--gres=gpu", 1, ""},
                           {"--gres=gpu:4", 4, ""},
                           {"--gres=gpu:a100", 1, "a100"},
                           {"--gres=gpu:a100:4", 4, "a100"},
                           {"--gres=gpu:a100:4(S:0-1)", 4, "a100"},
                           {"--gres=gpu:1g.5gb:2", 2, "1g.5gb"},
                           {"--gres=gpu:nvidia_a100_3g.20gb", 1, "nvidia_a100_3g.20gb"},
                           {"--gres=gres/gpu:2", 2, ""},
                           {"--gres=gres:gpu:2", 2, ""},
                           {"--gres=gpu=3", 3, ""},
                           {"--gres=craynetwork:1,gpu:2", 2, ""},
                           {"--gpus-per-node=h100", 1, "h100"},
                           {"--gpus-per-node=h100:8", 8, "h100"},
                           {"--gpus-per-task=a100:2", 2, "a100"},
                           {"--gpus-per-task=a100", 1, "a100"},
                           {"-N1 --gpus=a100:2", 2, "a100"},
                           {"-N1 -Ga100", 1, "a100"},
                           {"--tres-per-task=cpu=4,gres/gpu:a100=2", 2, "a100"},
                           {"--tres-per-task=gres/gpu:2", 2, ""}}) {
    const Workload w = workload_of(script(each.options));
    EXPECT_EQ(w.resources.gpus_per_node, each.count) << each.options;
    EXPECT_EQ(w.slurm.gpu_type, each.type) << each.options;
  }
  EXPECT_FALSE(workload_of(script("--gres=none")).resources.gpus_per_node.has_value());
  EXPECT_FALSE(workload_of(script("--gres=gpu:0")).resources.gpus_per_node.has_value());
  for (const char* options : {"--gres=gpu:a100:x-", "--gpus=0", "--gpus-per-node=-1", "--gres=gpu:a100:2,gpu:v100:1"})
    EXPECT_NE(refused(script(options)), "") << options;
}

TEST(ImportSlurm, takes_unique_beginnings_of_long_options) {
  EXPECT_TRUE(tells(imported(script("--out=x.out")), "--out=x.out"));
  EXPECT_EQ(workload_of(script("--part=gpu")).slurm.partition, "gpu");
  EXPECT_EQ(workload_of(script("--job=a")).name, "a");
  EXPECT_EQ(workload_of(script("--nodes=2 --ntasks-per-n=4")).resources.ranks_per_node, 4);
  EXPECT_EQ(workload_of("srun --parti gpu python3 a.py").slurm.partition, "gpu");
  EXPECT_EQ(workload_of(script("--mem=4G")).resources.memory, kGiB * 4) << "a whole name is no beginning";
  EXPECT_NE(refused(script("--gpus-per=2")).find("begins several options of sbatch's"), std::string::npos);
  EXPECT_NE(refused(script("--nodez=2")).find("no such flag"), std::string::npos);
}

// Refuses lines that sbatch refuses: nothing is silently ignored.
TEST(ImportSlurm, refuses_lines_that_sbatch_refuses) {
  const std::string text =
      "#!/bin/bash\n#SBATCH \xe2\x80\x93\xe2\x80\x93mem=180GB\n#SBATCH\xc2\xa0--nodes=2\n"
      "#SBATCH --time 60 gpu --gres=gpu:4\n#SBATCH \xe2\x80\x94nodes=2\n#SBATCH nodes=2\n#SBATCH "
      "--nodes=2\xe2\x80\xaf\n"
      "python3 train.py\n";
  const Result<Imported> made = import_job({text, "a.sbatch"});
  ASSERT_FALSE(made.ok());
  std::vector<int> lines = {made.error().where.line};
  for (const Error& other : made.error().others) lines.push_back(other.where.line);
  EXPECT_EQ(lines, (std::vector<int>{2, 3, 4, 5, 6, 7})) << to_string(made.error());
  EXPECT_NE(to_string(made.error()).find("'gpu' is no option; sbatch: Invalid directive found in batch script"),
            std::string::npos)
      << to_string(made.error());
  EXPECT_EQ(workload_of(script("--time 60 # an hour")).resources.longest, Seconds(3600.0));
}

// Total counts determine the number of nodes only together with counts per node.
TEST(ImportSlurm, tells_how_many_nodes_nobody_said) {
  const Imported many = imported(script("-n 384 --gpus-per-node=8"));
  EXPECT_NE(why(many, "-n 384").find("on how many nodes is not said"), std::string::npos) << many.yaml;
  EXPECT_FALSE(workload_of(script("-n 384 --gpus-per-node=8")).resources.ranks_per_node.has_value());
  EXPECT_NE(why(imported(script("--gpus=16")), "nodes of --gpus=16").find("not said"), std::string::npos);
  EXPECT_NE(why(imported(script("--ntasks=4")), "nodes of --ntasks=4").find("not said"), std::string::npos);
  for (const char* known : {"-n 384 -N 48", "-n 1", "--gpus=1", "-N 2 --gpus=16", "--ntasks-per-node=4"})
    EXPECT_EQ(why(imported(script(known)), "nodes of"), "") << known;
  const auto nodes = [](const std::string& options) { return workload_of(script(options)).resources.nodes; };
  EXPECT_EQ(nodes("-n 16 --ntasks-per-node=8"), (CountRange{2, 2}));
  EXPECT_EQ(nodes("--gpus=16 --gpus-per-node=8"), (CountRange{2, 2}));
  EXPECT_EQ(nodes("--gpus=16 --gpus-per-task=1 --ntasks-per-node=8"), (CountRange{2, 2}));
  EXPECT_NE(refused(script("-n 10 --ntasks-per-node=8")).find("not as many on each node"), std::string::npos);
}

// Products of pasted counts may overflow.
TEST(ImportSlurm, takes_no_count_beyond_what_a_number_holds) {
  const std::string most = "1000000000";
  for (const std::string& options :
       {"--ntasks-per-node=" + most + " --cpus-per-task=" + most + " --mem-per-cpu=8000000T",
        "--gpus-per-task=" + most + " --ntasks-per-node=" + most + " --cpus-per-gpu=" + most +
            " --mem-per-gpu=9000T"}) {
    const Result<Imported> made = import_job({script(options), "f"});
    if (made.ok()) { EXPECT_TRUE(read_workload(made->yaml, "f").ok()) << made->yaml; }
  }
}

}  // namespace
}  // namespace systole
