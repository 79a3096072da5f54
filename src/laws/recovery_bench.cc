// Recovery time: from the kill of a rank to the end of the next step, split into named parts, for 2, 4 and 8 ranks of a
// small model: medians of five kills each. As reported by the agent (Recovered).

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

constexpr int kKills = 5;

class Kills : public RankedRuns {
 public:
  void TestBody() override {}

  std::vector<Recovered> of(int ranks) {
    const std::string run = fmt::format("r{}", ranks), number = std::to_string(ranks);
    Process agent =
        start(run, words(run, {"--ranks", number, "--set", "train.steps=1000000", "--max-restarts", "100"}));
    for (int n = 0; n < kKills; ++n) {
      const std::int64_t next = last_step(run) + 20;
      if (!wait_for_step(agent, run, next)) break;
      ::kill(pid_of_rank(agent.pid(), n % ranks), SIGKILL);
      wait_until(agent, [&] { return recovered(run).size() > static_cast<std::size_t>(n); });
    }
    end_at_once(agent);
    return recovered(run);
  }

 private:
  std::vector<Recovered> recovered(const std::string& run) const {
    std::vector<Recovered> all;
    for (const Event& event : agent_events(run)) {
      if (const auto* back = std::get_if<Recovered>(&event.body)) all.push_back(*back);
    }
    return all;
  }
};

double median(const std::vector<Recovered>& all, const std::function<Seconds(const Recovered&)>& part) {
  std::vector<double> times;
  for (const Recovered& one : all) times.push_back(part(one).count());
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

}  // namespace
}  // namespace systole::laws

int main() {
  using namespace systole::laws;
  using systole::Recovered;
  std::printf("seconds from the kill of a rank to the next step\n%5s %9s %9s %9s %9s %9s %9s\n", "ranks", "detected",
              "ended", "restarted", "restored", "stepped", "all");
  for (const int ranks : {2, 4, 8}) {
    const std::vector<Recovered> all = Kills().of(ranks);
    std::printf("%5d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f   (%zu kills)\n", ranks,
                median(all, [](const Recovered& r) { return r.detected; }),
                median(all, [](const Recovered& r) { return r.ended; }),
                median(all, [](const Recovered& r) { return r.restarted; }),
                median(all, [](const Recovered& r) { return r.restored; }),
                median(all, [](const Recovered& r) { return r.stepped; }),
                median(all, [](const Recovered& r) { return r.total(); }), all.size());
  }
  return 0;
}
