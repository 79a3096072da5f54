// Eight faults, each on one rank of four: the agent names the rank and the stage during the run, within three steps or
// two seconds; it names nothing in a healthy run.

#include <chrono>
#include <thread>

#include "ground/base/document.h"
#include "ground/base/philox.h"
#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

constexpr int kRanks = 4;

struct Fault {
  const char* name;
  const char* inject;  // {0}: rank, {1}: step
  const char* kind;
  std::vector<const char*> stages;  // any of these is correct
  bool replays = false;
};

const Fault kFaults[] = {
    {"slow loader", "rank{0}.data=250ms+{1}", "slow", {"data_wait"}},
    {"slow forward", "rank{0}.forward=150ms+{1}", "slow", {"forward"}},
    {"slow backward", "rank{0}.backward=150ms+{1}", "slow", {"backward"}},
    {"slow link", "rank{0}.link=15ms+{1}", "slow", {"transfer"}},
    {"stuck rank", "rank{0}.stuck=forward@{1}", "stuck", {"forward"}},
    {"lost message", "rank{0}.lost={1}", "lost_message", {"transfer"}},
    {"mismatched collective", "rank{0}.mismatch={1}", "mismatch", {"transfer"}},
    {"flipped bit", "rank{0}.flip={1}", "flipped_bit", {"backward"}, true},
};

double seconds_of(const std::string& at) {  // within the day
  return std::stod(at.substr(11, 2)) * 3600 + std::stod(at.substr(14, 2)) * 60 + std::stod(at.substr(17, 6));
}

// Calendar time of an event in seconds, from its process's `opened`.
template <typename Pick>
std::optional<double> moment_of(const std::vector<Event>& events, const Pick& pick) {
  double opened = 0;
  for (const Event& event : events) {
    if (const auto* begin = std::get_if<Opened>(&event.body)) opened = seconds_of(begin->at);
    if (pick(event)) return opened + event.t.count();
  }
  return std::nullopt;
}

class NamedFaults : public RankedRuns {
 protected:
  struct Trial {
    bool told = false, rank = false, stage = false, in_time = false;
    double after = 0;  // seconds since the last healthy step
    std::string text;
  };

  std::vector<StragglerFound> held_up(const std::string& run) const {
    std::vector<StragglerFound> all;
    for (const Event& event : agent_events(run)) {
      if (const auto* held = std::get_if<StragglerFound>(&event.body)) all.push_back(*held);
    }
    return all;
  }

  Trial tried(const Fault& fault, int rank, std::int64_t step, const std::string& run) {
    std::vector<std::string> all =
        words(run, {"--ranks", std::to_string(kRanks), "--set", "train.steps=100000", "--set", "checkpoint.every=never",
                    "--inject", fmt::format(fmt::runtime(fault.inject), rank, step)});
    if (fault.replays) all.insert(all.end(), {"--set", "observe.replay_check=1"});
    Process agent = start(run, all);
    Trial trial;
    trial.told = wait_until(agent, [&] { return !held_up(run).empty(); });
    end_at_once(agent);
    if (!trial.told) {
      trial.text = said(run);
      return trial;
    }
    const StragglerFound held = held_up(run).front();
    trial.text = held.text;
    trial.rank = held.rank == rank && held.kind == fault.kind;
    trial.stage = std::any_of(fault.stages.begin(), fault.stages.end(), [&](auto s) { return held.stage == s; });
    const std::optional<double> well = moment_of(events(run), [&](const Event& event) {
      const auto* ended = std::get_if<StepEnded>(&event.body);
      return ended != nullptr && ended->step == step - 1;
    });
    const std::optional<double> told = moment_of(
        agent_events(run), [](const Event& event) { return std::holds_alternative<StragglerFound>(event.body); });
    if (well && told) trial.after = *told - *well;
    // The reader is ahead of the steps by the rows that it prefetches.
    const std::int64_t ahead = std::string_view(fault.name) == "slow loader" ? 4 : 0;
    trial.in_time = held.step - step + 1 <= 3 + ahead || trial.after <= 2;
    return trial;
  }
};

TEST_F(NamedFaults, rank_and_stage_are_told_in_time) {
  const int trials = is_long() ? 25 : 1;
  int total = 0, ranks = 0, stages = 0;
  PhiloxStream draw(test_seed());
  for (const Fault& fault : kFaults) {
    int right_rank = 0, right_stage = 0, in_time = 0;
    double longest = 0;
    for (int t = 0; t < trials; ++t) {
      const int rank = static_cast<int>(draw.next_u32() % kRanks);
      const std::int64_t step = 12 + draw.next_u32() % 20;
      const std::string run = fmt::format("f{}-{}", &fault - kFaults, t);
      const Trial trial = tried(fault, rank, step, run);
      right_rank += trial.rank;
      right_stage += trial.stage && trial.rank;
      in_time += trial.in_time;
      longest = std::max(longest, trial.after);
      if (!trial.rank || !trial.stage || !trial.in_time) {
        note(fmt::format("{} on rank {} at step {}, after {:.2f} s: {}", fault.name, rank, step, trial.after,
                         trial.told ? trial.text : "nothing was told"));
        if (!trial.told) { ADD_FAILURE() << fault.name << " on rank " << rank << ":\n" << trial.text; }
      }
      std::filesystem::remove_all(shop_.path(run));
    }
    note(fmt::format("{}: right rank {} of {}, right stage {}, in time {}, at most {:.1f} s after it began", fault.name,
                     right_rank, trials, right_stage, in_time, longest));
    EXPECT_EQ(in_time, trials) << fault.name;
    total += trials;
    ranks += right_rank;
    stages += right_stage;
  }
  EXPECT_GE(ranks, 0.99 * total);
  EXPECT_GE(stages, 0.95 * total);
}

TEST_F(NamedFaults, a_run_that_is_well_raises_no_alarm) {
  const Seconds time(is_long() ? 600.0 : 6.0);
  Process agent = start("well", words("well", {"--ranks", std::to_string(kRanks), "--set", "train.steps=1000000"}));
  ASSERT_TRUE(wait_for_step(agent, "well", 3)) << said("well");
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(time.count());
  while (std::chrono::steady_clock::now() < until && !agent.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(agent.has_ended()) << said("well");
  agent.signal(SIGTERM).value();
  EXPECT_EQ(agent.wait().code, 75) << said("well");
  note(fmt::format("{} steps of {} ranks without an alarm", last_step("well"), kRanks));
  EXPECT_TRUE(held_up("well").empty()) << held_up("well").front().text;
}

TEST_F(NamedFaults, why_names_the_rank_and_the_stage_afterwards) {
  const Captured ran =
      shop_.systole(words("slow", {"--ranks", "3", "--set", "train.batch=6", "--inject", "rank1.backward=100ms"}));
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  const Captured why = shop_.systole({"why", "slow"});
  EXPECT_NE(why.out.find("rank 1 held the others up in backward: "), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("rank 1 is slow: backward of step "), std::string::npos) << why.out;
  const Captured json = shop_.systole({"why", "slow", "--json"});
  const Node report = parse_json(json.out, "why").value();
  const Node* many = report.find("many_ranks");
  ASSERT_NE(many, nullptr) << json.out;
  EXPECT_EQ(many->find("slowest")->find("rank")->text(), "1");
  EXPECT_EQ(many->find("slowest")->find("stage")->text(), "backward");
  EXPECT_EQ(many->find("ranks")->items().size(), 3u);
}

}  // namespace
}  // namespace systole::laws
