// Ranks in separate processes: any layout trains to the same loss, any rank may be killed, a run goes on on any other
// mesh, and nothing is left behind.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "describe/spec/plan.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr std::int64_t kSteps = 40;

class ManyRanks : public ::testing::Test {
 protected:
  // The workload on one device, not exact, with dims divisible by 2 and 4.
  static std::vector<std::string> words(const std::string& run, std::vector<std::string> more) {
    std::vector<std::string> all{"run",   "job.yaml",          "--folder", run,
                                 "--set", "train.exact=false", "--set",    "train.batch=8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  double final_loss(const std::string& run) const { return canonical_steps(shop_.events(run)).back().loss; }

  // Whether a process has the run's folder in its command line.
  bool anybody_left(const std::string& run) const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      std::string line = text.str();
      std::replace(line.begin(), line.end(), '\0', ' ');
      if (line.find(" rank ") != line.npos && line.find(run) != line.npos) return true;
    }
    return false;
  }

  // Rank processes of the run, by their command lines.
  static std::vector<pid_t> ranks_of(pid_t agent) {
    std::vector<pid_t> pids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      pid_t pid = 0, parent = 0;
      std::string name;
      char state = 0;
      if (file >> pid >> name >> state >> parent && parent == agent && state != 'Z') {
        std::ifstream words(entry.path() / "cmdline", std::ios::binary);
        std::string program, verb;
        std::getline(words, program, '\0');
        std::getline(words, verb, '\0');
        if (verb == "rank") pids.push_back(pid);
      }
    }
    return pids;
  }

  // Starts the run and waits until step `step` is in its events.
  Process started(const std::string& run, std::int64_t step, std::vector<std::string> more) const {
    Command command = shop_.command(words(run, std::move(more)));
    command.argv.insert(command.argv.end(), {"--inject", "compute=25ms"});
    command.out = ChildStream::file(shop_.path(run + ".out"));
    command.err = ChildStream::file(shop_.path(run + ".err"));
    Process process = Process::start(command).value();
    for (int look = 0; look < 3000 && !process.has_ended(); ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!std::filesystem::exists(shop_.path(run + "/events/000.jsonl"))) continue;
      for (const Event& event : shop_.events(run)) {
        const auto* ended = std::get_if<StepEnded>(&event.body);
        if (ended != nullptr && ended->step >= step) return process;
      }
    }
    ADD_FAILURE() << "it ended before it was disturbed:\n" << said(run);
    return process;
  }

  std::string said(const std::string& run) const {
    std::stringstream text;
    for (const char* stream : {".out", ".err"}) text << std::ifstream(shop_.path(run + stream)).rdbuf();
    return text.str();
  }

  Workshop shop_;
};

TEST_F(ManyRanks, any_layout_trains_to_the_loss_of_one_device) {
  ASSERT_EQ(shop_.systole(words("one", {})).exit.code, 0);
  const double one = final_loss("one");
  for (const auto& [run, mesh] :
       {std::pair("rows", "mesh={data: 2}"), std::pair("parts", "mesh={fsdp: 2}"), std::pair("dims", "mesh={model: 2}"),
        std::pair("both", "mesh={fsdp: 2, model: 2}"), std::pair("tokens", "mesh={context: 2}"),
        std::pair("rows_and_tokens", "mesh={data: 2, context: 2}"), std::pair("ring", "mesh={context: 4}"),
        std::pair("stages", "mesh={pipe: 2}")}) {
    const char* how = run == std::string("stages") ? "train.microbatches=4"
                      : run == std::string("ring") ? "context_parallel=ring"
                                                   : "train.microbatches=1";
    const Captured ran = shop_.systole(words(run, {"--set", mesh, "--set", how}));
    ASSERT_EQ(ran.exit.code, 0) << mesh << "\n" << ran.out << ran.err;
    EXPECT_NEAR(final_loss(run), one, 2e-2 * one) << mesh;  // bf16, different summation orders
    EXPECT_EQ(shop_.unplanned_work(run, kSteps), "") << mesh;
    EXPECT_FALSE(anybody_left(run));
  }
}

TEST_F(ManyRanks, a_run_goes_on_on_any_other_mesh) {
  const Captured parts = shop_.systole(words("run", {"--set", "mesh={fsdp: 3}", "--set", "train.steps=10"}));
  ASSERT_EQ(parts.exit.code, 0) << parts.err;
  const Captured tensor =
      shop_.systole({"resume", "run", "--set", "mesh={data: 2, model: 2}", "--set", "train.steps=20"});
  ASSERT_EQ(tensor.exit.code, 0) << tensor.err;
  EXPECT_EQ(shop_.not_resumed("run", 10), "");
  const Captured stages = shop_.systole({"resume", "run", "--set", "mesh={pipe: 2, fsdp: 2}", "--set",
                                         "train.microbatches=2", "--set", "train.steps=25"});
  ASSERT_EQ(stages.exit.code, 0) << stages.err;
  EXPECT_EQ(shop_.not_resumed("run", 20), "");
  const Captured alone = shop_.systole({"resume", "run", "--set", "mesh={}", "--set", "train.steps=30"});
  ASSERT_EQ(alone.exit.code, 0) << alone.err;
  EXPECT_EQ(shop_.not_resumed("run", 25), "");
  const auto steps = canonical_steps(shop_.events("run"));
  ASSERT_EQ(steps.size(), 30U);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i + 1));
  EXPECT_LT(steps.back().loss, steps.front().loss * 0.8);
}

// Twice to the same bits, and continued without the axis.
TEST_F(ManyRanks, experts_lie_apart) {
  constexpr std::int64_t kFew = 12;
  const auto run = [&](const char* name, const char* mesh) {
    const Captured ran = shop_.systole(words(name, {"--set", "model.family=llama", "--set", "model.moe={experts: 4}",
                                                    "--set", mesh, "--set", fmt::format("train.steps={}", kFew)}));
    EXPECT_EQ(ran.exit.code, 0) << ran.out << ran.err;
    EXPECT_EQ(shop_.unplanned_work(name, kFew), "") << mesh;
    return final_loss(name);
  };
  const auto dropped_at_first = [&](const char* name) { return canonical_steps(shop_.events(name)).at(0).dropped; };
  const double one = run("one", "mesh={}");
  EXPECT_NEAR(run("apart", "mesh={expert: 2}"), one, 2e-2 * one);
  EXPECT_NEAR(run("again", "mesh={expert: 2}"), one, 2e-2 * one);
  ASSERT_TRUE(dropped_at_first("one"));
  EXPECT_GT(*dropped_at_first("one"), 0);
  EXPECT_NEAR(dropped_at_first("apart").value(), *dropped_at_first("one"), 1e-3);
  EXPECT_EQ(shop_.state_hash("apart", kFew), shop_.state_hash("again", kFew));
  const Captured parts =
      shop_.systole({"resume", "again", "--set", "mesh={fsdp: 2}", "--set", fmt::format("train.steps={}", kFew + 2)});
  EXPECT_EQ(parts.exit.code, 0) << parts.err;
  EXPECT_EQ(shop_.not_resumed("again", kFew), "");
}

TEST_F(ManyRanks, a_killed_rank_is_named_and_the_run_goes_on_to_the_same_end) {
  ASSERT_EQ(shop_.systole(words("whole", {"--ranks", "2"})).exit.code, 0);
  Process agent = started("killed", 9, {"--ranks", "2"});
  const std::vector<pid_t> ranks = ranks_of(agent.pid());
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_EQ(kill(ranks[1], SIGKILL), 0);
  const Exit exit = agent.wait();
  EXPECT_EQ(exit.code, 0) << to_string(exit) << "\n" << said("killed");
  EXPECT_NE(said("killed").find("was killed by SIGKILL"), std::string::npos) << said("killed");
  EXPECT_NE(said("killed").find("generation 2"), std::string::npos) << said("killed");
  const std::vector<Turn> turns = shop_.turns("killed");
  ASSERT_GE(turns.size(), 2U);
  EXPECT_GE(turns[1].from_step, 4);
  EXPECT_EQ(turns[1].first, turns[1].from_step + 1);
  // The same ranks, threads and summation order: the same bits.
  EXPECT_EQ(shop_.state_hash("killed", kSteps), shop_.state_hash("whole", kSteps));
  EXPECT_FALSE(anybody_left("killed"));
}

TEST_F(ManyRanks, sigterm_saves_on_all_ranks_and_resume_goes_on) {
  Process agent = started("asked", 6, {"--ranks", "2"});
  agent.signal(SIGTERM).value();
  const Exit exit = agent.wait();
  EXPECT_EQ(exit.code, 75) << to_string(exit) << "\n" << said("asked");
  const auto stopped = last_of<Stopped>(shop_.events("asked"));
  EXPECT_TRUE(stopped.saved);
  const Captured resumed = shop_.systole({"resume", "asked", "--ranks", "2"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_EQ(shop_.not_resumed("asked", stopped.step), "");
  EXPECT_EQ(canonical_steps(shop_.events("asked")).size(), static_cast<std::size_t>(kSteps));
}

TEST_F(ManyRanks, the_agent_killed_takes_its_ranks_with_it) {
  Process agent = started("orphans", 5, {"--ranks", "2"});
  const std::vector<pid_t> ranks = ranks_of(agent.pid());
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_EQ(kill(agent.pid(), SIGKILL), 0);
  static_cast<void>(agent.wait());
  bool left = true;
  for (int look = 0; look < 500 && left; ++look) {
    left = anybody_left("orphans");
    if (left) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(left);
  EXPECT_EQ(shop_.systole({"resume", "orphans", "--ranks", "2"}).exit.code, 0);
}

TEST_F(ManyRanks, what_cannot_be_is_refused_before_anything_starts) {
  for (const auto& [more, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--ranks", "three"}, "'three' is no number of ranks"},
           {{"--ranks", "4:2"}, "4 is above 2"},
           {{"--ranks", "3", "--set", "mesh={data: 2}"}, "the workload's mesh has 2 devices"},
           {{"--ranks", "1:2", "--set", "mesh={data: 2}"}, "may change only where the workload has no mesh"},
           {{"--set", "mesh={dat: 2}"}, "did you mean 'data'"},
           {{"--set", "mesh={model: 2}", "--set", "train.exact=true"}, "train.exact on a mesh with an axis 'model'"},
           {{"--ranks", "9", "--set", "train.exact=true"}, "9 devices for 8 logical shards"},
           {{"--set", "mesh={model: 2}", "--set", "sharding={blocks.*.mlp.upp: {mlp: model}}"},
            "no parameter is named"},
       }) {
    const Captured refused = shop_.systole(words("refused", more));
    EXPECT_NE(refused.exit.code, 0) << says;
    EXPECT_NE(refused.err.find(says), std::string::npos) << says << "\n" << refused.err;
    EXPECT_NE(refused.err.find("hint:"), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(shop_.path("refused"))) << says;
  }
}

// With fewer ranks, each has more memory, and needs it for its larger share of the batch.
TEST_F(ManyRanks, ranks_share_what_the_node_may_take_as_many_as_there_are) {
  const auto needs = [&](const char* mesh) {
    const Captured planned = shop_.systole({"plan", "job.yaml", "--set", "train.exact=false", "--set",
                                            "train.batch=512", "--set", mesh, "--out", "plan.json"});
    EXPECT_EQ(planned.exit.code, 0) << planned.err;
    std::ifstream file(shop_.path("plan.json"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    Bytes total;
    for (const auto& [owner, bytes] : read_plan(text, "plan.json").value().memory.by_owner) total += bytes;
    return total;
  };
  const Bytes alone = needs("mesh={}"), one_of_two = needs("mesh={data: 2}");
  ASSERT_GT(alone.count(), one_of_two.count() + 8 * kMiB.count());
  const std::string memory = fmt::format("{}B", alone.count() + one_of_two.count());
  const Captured ran = shop_.systole(words("fewer", {"--set", "train.batch=512", "--set", "train.steps=2", "--ranks",
                                                     "1:2", "--local-ranks", "1", "--memory", memory}));
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("generation 1 starts with 1 rank"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace systole::laws
