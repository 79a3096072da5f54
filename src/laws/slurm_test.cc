// Rendered Slurm files on a real Slurm: tools/slurm starts a controller and four nodes on loopback.
#include "laws/slow_steps.h"
#include "laws/slurm_cluster.h"

namespace systole {
namespace {

TEST_F(Slurm, has_four_nodes) {
  const Captured names = run("srun -N4 --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' | sort");
  EXPECT_EQ(names.out, "n0\nn1\nn2\nn3\n") << names.err;
}

TEST_F(Slurm, four_nodes_train_what_one_machine_does) {
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(reaches(job, "COMPLETED")) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 1200")) << log(job);
  const std::string said = log(job);
  int joined = 0;  // besides the leader
  for (std::size_t at = said.find(" joined with room"); at != said.npos; at = said.find(" joined with room", at + 1))
    ++joined;
  EXPECT_EQ(joined, 3) << said;
  expect_as_undisturbed("runs/line");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/line/token")) << "what the nodes share is no longer there";
}

TEST_F(Slurm, a_preempted_run_saves_is_begun_again_and_comes_to_the_same_bytes) {
  run(slow_steps(300));
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 50 ")) << log(job);
  write("urgent.sh", "#!/bin/sh\nsleep 1\n");
  ASSERT_EQ(run("sbatch -p urgent -N4 --exclusive urgent.sh").exit.code, 0);
  ASSERT_TRUE(logs(job, "stopped with its state saved")) << log(job);
  ASSERT_TRUE(reaches(job, "COMPLETED")) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 300"));
  EXPECT_TRUE(has(run("scontrol -o show job " + job).out, "Restarts=1 "));
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, a_node_that_dies_costs_what_came_after_the_last_checkpoint) {
  run(slow_steps(300));
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 50 ")) << log(job);
  ASSERT_EQ(tool("kill", "n2").exit.code, 0);
  ASSERT_TRUE(waits([&] { return state(job) == "PENDING"; })) << log(job);
  EXPECT_FALSE(has(log(job), "finished at step")) << log(job);
  ASSERT_EQ(tool("start", "n2").exit.code, 0);
  ASSERT_TRUE(reaches(job, "COMPLETED", 120)) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 300"));
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, a_cancelled_run_saves_and_is_not_begun_again) {
  run(slow_steps(300));
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 50 ")) << log(job);
  ASSERT_EQ(run("scancel --name=line").exit.code, 0);
  ASSERT_TRUE(reaches(job, "CANCELLED")) << log(job);
  ASSERT_TRUE(logs(job, "stopped with its state saved")) << log(job);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(state(job), "CANCELLED");
  const std::string again = submit();  // the same files
  ASSERT_TRUE(reaches(again, "COMPLETED")) << log(again);
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, an_array_is_one_run_a_seed) {
  write("small.yaml", kSmall);
  render("small.yaml", "--set slurm.array=0:3 --set train.seed=10");
  const std::string job = submit();
  ASSERT_TRUE(waits([&] { return run("squeue -h").out.empty(); }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(has(text_of(folder_ / fmt::format("slurm-{}_{}.log", job, i)), "finished at step 20")) << i;
    ASSERT_EQ(run(fmt::format("\"$SYSTOLE\" run small.yaml --set train.seed={} --folder seed-{}", 10 + i, i)).exit.code,
              0);
    EXPECT_EQ(run(fmt::format("\"$SYSTOLE\" ckpt diff seed-{0} runs/small.{0}", i)).exit.code, 0) << i;
  }
  EXPECT_EQ(run("\"$SYSTOLE\" ckpt diff seed-0 seed-1").exit.code, 1);
}

TEST_F(Slurm, a_chain_goes_on_only_after_what_went_well) {
  write("good.yaml",
        "systole: 1\nname: good\ncommand: [sh, -c, date +%s.%N >$SYSTOLE_RUN/at]\nresources: { longest: 1min }\n");
  write("bad.yaml", "systole: 1\nname: bad\ncommand: [sh, -c, exit 1]\nresources: { longest: 1min }\n");
  for (const char* name : {"good", "bad"}) render(fmt::format("{}.yaml", name), fmt::format("--out {}", name));
  const std::string first = submit("", "good");
  const std::string second = submit("--dependency=afterok:" + first + " --export=ALL,SYSTOLE_AFTER=1", "good");
  const std::string failed = submit("--dependency=afterok:" + second, "bad");
  const std::string never = submit("--dependency=afterok:" + failed + " --kill-on-invalid-dep=yes", "good");
  ASSERT_TRUE(reaches(failed, "FAILED")) << log(failed);
  EXPECT_EQ(state(first), "COMPLETED");
  EXPECT_EQ(state(second), "COMPLETED");
  EXPECT_TRUE(reaches(never, "CANCELLED")) << state(never);
}

TEST_F(Slurm, what_was_changed_on_the_way_is_not_started) {
  write("small.yaml", kSmall);
  render("small.yaml");
  ASSERT_EQ(run("echo '# one more line' >>rendered/slurm/workload.yaml").exit.code, 0);
  const std::string job = submit();
  ASSERT_TRUE(reaches(job, "FAILED"));
  EXPECT_TRUE(has(log(job), "workload.yaml on ")) << log(job);
  EXPECT_TRUE(has(log(job), "is not the file that was rendered")) << log(job);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/small/plan.json"));
}

TEST_F(Slurm, takes_what_is_rendered_as_its_own) {
  for (const char* more : {"", "--set resources.nodes=2:4", "--set slurm.array=0:9 --set slurm.at_once=2"}) {
    write("own.yaml", "systole: 1\nname: own\ncommand: [hostname]\nresources: { longest: 1min }\n");
    render("own.yaml", more);
    const Captured taken = run("sbatch --test-only rendered/slurm/job.sbatch");
    EXPECT_EQ(taken.exit.code, 0) << more << taken.err;
  }
}

}  // namespace
}  // namespace systole
