// Launchers after other words: found, or refused by name, never taken for the program.
#include <gtest/gtest.h>

#include "operate/import/testing/imported.h"
#include "operate/import/wrappers.h"

namespace systole {
namespace {

struct Wrapped {
  const char* line;
  Words command;
};

constexpr const char* kRun = "torchrun --nproc-per-node=8 train.py --lr 1";

TEST(ImportLaunchers, are_found_behind_wrappers) {
  const Words plain = {"python3", "-u", "train.py", "--lr", "1"};
  const auto behind = [&](Words words) {
    words.insert(words.end(), plain.begin(), plain.end());
    return words;
  };
  const std::vector<std::pair<std::string, Words>> lines = {
      {"uv run ", behind({"uv", "run"})},
      {"uv run --with numpy --python 3.12 -- ", behind({"uv", "run", "--with", "numpy", "--python", "3.12", "--"})},
      {"uv --project x run ", behind({"uv", "--project", "x", "run"})},
      {"poetry run ", behind({"poetry", "run"})},
      {"pixi run -e cuda ", behind({"pixi", "run", "-e", "cuda"})},
      {"conda run -n e --no-capture-output ", behind({"conda", "run", "-n", "e", "--no-capture-output"})},
      {"micromamba run -p /opt/e ", behind({"micromamba", "run", "-p", "/opt/e"})},
      {"pipenv run ", behind({"pipenv", "run"})},
      {"nsys profile -o out --trace=cuda ", behind({"nsys", "profile", "-o", "out", "--trace=cuda"})},
      {"numactl --cpunodebind=0 -m 0 ", behind({"numactl", "--cpunodebind=0", "-m", "0"})},
      {"timeout -s INT 2h ", behind({"timeout", "-s", "INT", "2h"})},
      {"stdbuf -oL -e L ", behind({"stdbuf", "-oL", "-e", "L"})},
      {"nice -n 5 ", behind({"nice", "-n", "5"})},
      {"taskset -c 0-7 ", behind({"taskset", "-c", "0-7"})},
      {"chrt -f 99 ", behind({"chrt", "-f", "99"})},
      {"env -u X ", behind({"env", "-u", "X"})},
      {"env OMP_NUM_THREADS=4 ", plain},
      {"env -S 'A=1 B=2' ", plain},
      {"exec ", plain},
      {"nohup ", plain},
      {"time ", plain},
      {"time -p ", plain},
      {"/usr/bin/time -v ", plain},
      {"command ", plain},
      {"setsid -w ", plain},
      {"srun ", plain},
      {"srun --ntasks=2 --ntasks-per-node=1 --label ", plain},
      {"srun -n1 uv run ", behind({"uv", "run"})},
      {"nohup nice numactl -l ", behind({"nice", "numactl", "-l"})},
      {"cd /w && exec ", {"bash", "-c", "cd /w\nexec python3 -u train.py --lr 1"}},
  };
  for (const auto& [in_front, command] : lines) {
    const Workload w = workload_of(in_front + kRun);
    EXPECT_EQ(w.command, command) << in_front;
    EXPECT_EQ(w.resources.ranks_per_node, 8) << in_front;
  }
  EXPECT_EQ(workload_of(std::string("env OMP_NUM_THREADS=4 ") + kRun).env.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(why(imported(std::string("nohup ") + kRun), "nohup").substr(0, 9), "the agent");
}

TEST(ImportLaunchers, are_found_in_scripts_of_a_shell) {
  const Words plain = {"python3", "-u", "train.py", "--lr", "1"};
  for (const char* in_front : {"srun bash -c", "bash -c", "sh -ec", "bash -euo pipefail -c", "exec bash -c",
                               "srun -N2 bash --norc -c", "env A=1 bash -c"}) {
    const Workload w = workload_of(std::string(in_front) + " 'export B=2; " + kRun + "'");
    EXPECT_EQ(w.command, plain) << in_front;
    EXPECT_EQ(w.resources.ranks_per_node, 8) << in_front;
    EXPECT_EQ(w.env.at("B"), "2") << in_front;
  }
  EXPECT_EQ(workload_of(std::string("bash -lc '") + kRun + "'").command,
            (Words{"bash", "-lc", "exec python3 -u train.py --lr 1"}));
  // An unparsable script is kept, unless it starts ranks itself.
  EXPECT_EQ(workload_of("bash -c 'for i in 1 2; do echo $i; done'").command,
            (Words{"bash", "-c", "for i in 1 2; do echo $i; done"}));
  for (const char* script : {"if true; then torchrun --nproc-per-node=8 a.py; fi", "while true; do srun a; done",
                             "for i in 1 2; do accelerate launch a.py; done", "f() { mpirun -n 2 a; }; f",
                             "if x; then python3 -m torch.distributed.run a.py; fi"})
    EXPECT_NE(refused(std::string("bash -c '") + script + "'"), "") << script;
}

TEST(ImportLaunchers, restore_from_becomes_resume_from) {
  const Workload apart = workload_of("CKPT=/data/last\nN=4\ntorchrun --nproc-per-node=2 t.py --restore-from $CKPT -v");
  EXPECT_EQ(apart.resume.from, "/data/last");
  EXPECT_EQ(apart.command, (Words{"bash", "-c", "exec python3 -u t.py --restore-from \"$SYSTOLE_RESUME_FROM\" -v"}));
  const std::string unknown = "python3 t.py --restore_from=$(cat last)";
  EXPECT_EQ(workload_of(unknown).resume.from, "") << "known where a rank runs alone";
  EXPECT_TRUE(notes(imported(unknown), "--restore_from"));
  EXPECT_EQ(workload_of("python3 t.py --restore_from").command, (Words{"python3", "t.py", "--restore_from"}));
  const std::string twice = "python3 t.py --restore_from=\"$SYSTOLE_RESUME_FROM\"";
  EXPECT_EQ(workload_of(twice).resume.from, "") << "what import has written stays";
  EXPECT_EQ(workload_of(twice).command[0], "bash") << "a shell reads the variable";
}

TEST(ImportLaunchers, are_known_by_other_names) {
  for (const char* line : {"python -m torch.distributed.run --nproc-per-node=8 train.py --lr 1",
                           "python3 -X faulthandler -m torch.distributed.launch --nproc_per_node=8 train.py --lr 1",
                           "python3 $(which torchrun) --nproc_per_node=8 train.py --lr 1",
                           "python3 /opt/bin/torchrun --nproc_per_node=8 train.py --lr 1",
                           "$(which torchrun) --nproc_per_node=8 train.py --lr 1",
                           "$HOME/bin/torchrun --nproc_per_node=8 train.py --lr 1"}) {
    EXPECT_EQ(workload_of(line).command, (Words{"python3", "-u", "train.py", "--lr", "1"})) << line;
    EXPECT_EQ(workload_of(line).resources.ranks_per_node, 8) << line;
  }
  EXPECT_EQ(workload_of("uv run -m torch.distributed.run --nproc-per-node=8 train.py").command,
            (Words{"uv", "run", "python3", "-u", "train.py"}));
  EXPECT_EQ(workload_of("uv run -m my.train --x").command, (Words{"uv", "run", "python", "-m", "my.train", "--x"}));
}

TEST(ImportLaunchers, are_found_in_variables_of_the_script) {
  const Words plain = {"python3", "-u", "train.py", "--lr", "1"};
  for (const char* script : {"LAUNCHER=\"torchrun --nproc-per-node=8\"\n$LAUNCHER train.py --lr 1",
                             "N=8\nARGS=\"--nproc-per-node $N\"\nsrun torchrun $ARGS train.py --lr 1",
                             "GPUS=8\ntorchrun --nproc-per-node=${GPUS} train.py --lr 1",
                             "export GPUS=8\nsrun bash -c \"torchrun --nproc-per-node=$GPUS train.py --lr 1\"",
                             "LAUNCHER='torchrun --nproc-per-node=8'\nsrun bash -c \"$LAUNCHER train.py --lr 1\"",
                             "LAUNCHER=\"torchrun --nproc-per-node=8\"\nsrun $LAUNCHER train.py --lr 1",
                             "N=8\nLAUNCHER=\"python -u -m torch.distributed.run --nproc_per_node $N\"\n"
                             "srun -N1 --kill-on-bad-exit=1 ${LAUNCHER} train.py --lr 1",
                             "LAUNCHER=\"srun --ntasks-per-node=1 torchrun --nproc-per-node=8\"\n"
                             "$LAUNCHER train.py --lr 1",
                             "LAUNCHER='torchrun --nproc-per-node=8'\nCMD='train.py --lr 1'\nsrun $LAUNCHER $CMD"}) {
    const Workload w = workload_of(script);
    EXPECT_EQ(w.command, plain) << script;
    EXPECT_EQ(w.resources.ranks_per_node, 8) << script;
  }
  EXPECT_NE(refused("torchrun $ARGS train.py").find("$ARGS: what it says stands nowhere here"), std::string::npos);
  EXPECT_NE(refused("srun $LAUNCHER train.py"), "");
  EXPECT_NE(refused("X='$X $X'\n$X train.py"), "") << "a variable that names itself";
}

TEST(ImportLaunchers, programs_of_ones_own_stay_as_they_are) {
  const std::vector<std::pair<std::string, Words>> lines = {
      {"exec python3 train.py", {"python3", "train.py"}},
      {"conda run -n e python train.py", {"conda", "run", "-n", "e", "python", "train.py"}},
      {"uv run train.py", {"uv", "run", "train.py"}},
      {"uv sync\nuv run python train.py", {"uv", "run", "python", "train.py"}},
      {"exec > log 2>&1\npython3 train.py", {"python3", "train.py"}},
      {"timeout 10 nvidia-smi\nenv\npython3 train.py", {"python3", "train.py"}},
      {"python3 train.py --launcher torchrun", {"python3", "train.py", "--launcher", "torchrun"}},
      {"./train --launcher torchrun", {"./train", "--launcher", "torchrun"}},
  };
  for (const auto& [line, command] : lines) EXPECT_EQ(workload_of(line).command, command) << line;
  EXPECT_TRUE(notes(imported("srun bash run.sh"), "bash run.sh"));
}

TEST(ImportLaunchers, are_refused_by_name) {
  for (const auto& [line, name] : std::vector<std::pair<std::string, std::string>>{
           {"uv run accelerate launch train.py", "accelerate"},
           {"uv run mpirun -n 8 python train.py", "mpirun"},
           {"nohup deepspeed train.py", "deepspeed"},
           {"srun apptainer exec i.sif torchrun a.py", "apptainer"},
           {"python -m accelerate.commands.launch train.py", "accelerate.commands.launch"},
           {"python -m deepspeed.launcher.runner train.py", "deepspeed.launcher.runner"},
           {"./wrap.sh torchrun --nproc-per-node=8 train.py", "torchrun"},
           {"my-profiler -o x python3 -m torch.distributed.run a.py", "torch.distributed.run"},
           {"my-profiler accelerate launch a.py", "accelerate"},
           {"sudo torchrun a.py", "sudo"},
           {"sudo -E -u root A=b torchrun a.py", "sudo: ranks run as whoever submits them"},
           {"srun sudo -n python3 a.py", "sudo: ranks run as whoever submits them"},
           {"nohup sudo bash -c 'torchrun a.py'", "sudo: ranks run as whoever submits them"},
           {"ssh host torchrun a.py", "ssh"},
           {"xargs -n 1 torchrun a.py", "xargs"},
           {"env -i torchrun a.py", "env -i"},
           {"$PYTHON train.py", "$PYTHON"}}) {
    EXPECT_NE(refused(line).find(name), std::string::npos) << line << ": " << refused(line);
  }
}

// Commands run by sudo before the program are reported like those without sudo.
TEST(ImportLaunchers, others_behind_sudo_are_told) {
  const Imported made = imported("sudo apt-get install -y git\nsudo -H pip install torch\npython3 train.py");
  EXPECT_NE(why(made, "sudo apt-get install").find("systole render --on docker"), std::string::npos) << made.yaml;
  EXPECT_NE(why(made, "sudo -H pip install").find("systole render --on docker"), std::string::npos) << made.yaml;
}

// A word processor's dash is not '-', and a no-break space is not a space.
TEST(ImportLaunchers, flags_that_only_look_like_flags_are_refused) {
  for (const char* line : {"torchrun \xe2\x80\x93\xe2\x80\x93nproc-per-node=8 train.py",
                           "torchrun \xe2\x80\x94nproc-per-node=8 train.py", "srun \xe2\x88\x92n 4 python3 a.py"})
    EXPECT_NE(refused(line).find("a dash that is no '-'"), std::string::npos) << line;
  EXPECT_NE(refused("torchrun\xc2\xa0--nproc-per-node=8 train.py").find("no-break space"), std::string::npos);
  EXPECT_EQ(workload_of("python3 train.py 'a\xc2\xa0"
                        "b'")
                .command.back(),
            "a\xc2\xa0"
            "b");
}

TEST(Unwrap, leaves_what_is_no_wrapper) {
  const std::vector<ShellWord> words = {{"python3", "python3"}, {"a.py", "a.py"}};
  EXPECT_FALSE(unwrap(words).wrapped());
  EXPECT_EQ(unwrap(words).words.size(), 2u);
  EXPECT_TRUE(unwrap({}).words.empty());
  const std::vector<ShellWord> alone = {{"uv", "uv"}, {"run", "run"}};
  EXPECT_TRUE(unwrap(alone).words.empty());
}

}  // namespace
}  // namespace systole
