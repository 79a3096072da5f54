#include "predict/schedule/pipeline_time.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace systole {
namespace {

// A player depends on the pipeline alone, not on the costs, and the search asks for the same one many times. The cache
// of players, tens of MB at most, is the only global state.
std::shared_ptr<const SchedulePlayer> player_of(const PipelineStrategy& pipeline, int microbatches) {
  using Key = std::tuple<int, int, int, int>;
  constexpr std::size_t kMostKept = std::size_t{1} << 21;  // actions of all players
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const SchedulePlayer>> known;
  static std::size_t kept = 0;
  const Key key{pipeline.stages, pipeline.chunks_per_stage, static_cast<int>(pipeline.kind), microbatches};
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  auto player = std::make_shared<const SchedulePlayer>(actions_of(pipeline, microbatches));
  if (kept + player->num_actions() > kMostKept) known.clear(), kept = 0;
  kept += player->num_actions();
  return known[key] = std::move(player);
}

}  // namespace

ActionGraph actions_of(const PipelineStrategy& pipeline, int microbatches) {
  const std::vector<std::vector<PipelineStep>> stages = pipeline_steps(pipeline, microbatches);
  const int chunks = pipeline.num_chunks();
  const auto place = [&](const PipelineStep& step) {
    const int of_chunk = (step.forward ? 0 : chunks) + step.chunk;
    return static_cast<std::size_t>(of_chunk) * static_cast<std::size_t>(microbatches) +
           static_cast<std::size_t>(step.microbatch);
  };
  ActionGraph graph;
  graph.devices = pipeline.stages;
  std::vector<int> action(2 * static_cast<std::size_t>(chunks) * static_cast<std::size_t>(microbatches));  // by place
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const PipelineStep& step : stages[s]) {
      action[place(step)] = static_cast<int>(graph.actions.size());
      graph.actions.push_back({static_cast<int>(s), Stream::compute, (step.forward ? 0 : chunks) + step.chunk});
    }
  }
  for (const std::vector<PipelineStep>& of_stage : stages) {
    for (const PipelineStep& step : of_stage) {
      const int before = step.forward ? step.chunk - 1 : step.chunk + 1;
      if (!step.forward)
        graph.waits.emplace_back(action[place(step)], action[place({true, step.chunk, step.microbatch})]);
      if (before < 0 || before >= chunks) continue;
      graph.waits.emplace_back(action[place(step)], action[place({step.forward, before, step.microbatch})]);
    }
  }
  return graph;
}

// In steady state each round of `stages` microbatches takes equally long. So only the first few rounds are played, and
// the rest is extrapolated.
Seconds pipeline_time(const PipelineStrategy& pipeline, int microbatches, const PipelineCosts& costs) {
  constexpr int kRounds = 4;
  std::vector<Seconds> durations = costs.forward;
  durations.insert(durations.end(), costs.backward.begin(), costs.backward.end());
  const int round = pipeline.stages, few = kRounds * round + microbatches % round;
  const auto end = [&](int count) { return player_of(pipeline, count)->time(durations); };
  if (microbatches <= few + round) return end(microbatches);
  const Seconds before = end(few), after = end(few + round);
  return after + (after - before) * ((microbatches - few - round) / round);
}

}  // namespace systole
