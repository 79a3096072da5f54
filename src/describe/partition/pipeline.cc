#include "describe/partition/pipeline.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "ground/base/error.h"

namespace systole {
namespace {

// The k-th forward (or backward) of a stage in an interleaved schedule: groups of `stages` microbatches pass through
// one chunk after the other.
PipelineStep interleaved(const PipelineStrategy& s, int stage, int k, bool forward) {
  const int group = s.stages * s.chunks_per_stage;
  const int of_stage = k % group / s.stages;  // index among the stage's chunks, in execution order
  const int place = forward ? of_stage : s.chunks_per_stage - 1 - of_stage;
  return {forward, place * s.stages + stage, k / group * s.stages + k % s.stages};
}

std::vector<PipelineStep> steps_of(const PipelineStrategy& s, int stage, int microbatches) {
  const int total = microbatches * s.chunks_per_stage;  // forwards, and as many backwards
  const auto step = [&](int k, bool forward) {
    return s.chunks_per_stage == 1 ? PipelineStep{forward, stage, k} : interleaved(s, stage, k, forward);
  };
  int ahead = total;  // forwards before the first backward
  if (s.kind == PipelineStrategy::Kind::one_f_one_b) {
    const int behind = s.stages - 1 - stage;
    ahead = s.chunks_per_stage == 1 ? behind : 2 * behind + (s.chunks_per_stage - 1) * s.stages;
    ahead = std::min(ahead, total);
  }
  std::vector<PipelineStep> steps;
  for (int k = 0; k < ahead; ++k) steps.push_back(step(k, true));
  for (int k = ahead; k < total; ++k) {
    steps.push_back(step(k, true));
    steps.push_back(step(k - ahead, false));
  }
  for (int k = total - ahead; k < total; ++k) steps.push_back(step(k, false));
  return steps;
}

// The chunk whose result a step needs; none at the model's ends.
std::optional<int> asked_of(const PipelineStep& step, int chunks) {
  const int before = step.forward ? step.chunk - 1 : step.chunk + 1;
  return before < 0 || before >= chunks ? std::nullopt : std::optional(before);
}

}  // namespace

const char* name_of(PipelineStrategy::Kind kind) { return kind == PipelineStrategy::Kind::gpipe ? "gpipe" : "1f1b"; }

std::vector<std::vector<PipelineStep>> pipeline_steps(const PipelineStrategy& strategy, int microbatches) {
  if (strategy.chunks_per_stage > 1 && microbatches % strategy.stages != 0) {
    fail(error(ErrorKind::invalid, "an interleaved pipeline of {} stages takes microbatches by the {}; there are {}",
               strategy.stages, strategy.stages, microbatches)
             .hinted(fmt::format("make them {}, or have one chunk a stage",
                                 (microbatches / strategy.stages + 1) * strategy.stages)));
  }
  std::vector<std::vector<PipelineStep>> stages;
  for (int stage = 0; stage < strategy.stages; ++stage) stages.push_back(steps_of(strategy, stage, microbatches));
  return stages;
}

PipelineClock::PipelineClock(const PipelineStrategy& strategy, int microbatches)
    : strategy_(strategy), microbatches_(microbatches), steps_(pipeline_steps(strategy, microbatches)) {
  constexpr std::int64_t kNotYet = -1;
  const int chunks = strategy.num_chunks();
  ended_.assign(2 * static_cast<std::size_t>(chunks) * static_cast<std::size_t>(microbatches), kNotYet);
  begins_.resize(steps_.size());
  std::vector<std::int64_t> free(steps_.size(), 0);  // per stage
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (; begins_[s].size() < steps_[s].size(); moved = true) {
        const PipelineStep& step = steps_[s][begins_[s].size()];
        const std::optional<int> from = asked_of(step, chunks);
        const std::int64_t sent = from ? ended_[place({step.forward, *from, step.microbatch})] : 0;
        if (sent == kNotYet) break;
        begins_[s].push_back(std::max(free[s], sent));
        free[s] = ended_[place(step)] = begins_[s].back() + (step.forward ? 1 : 2);
      }
    }
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    CHECK(begins_[s].size() == steps_[s].size(), "stage {} of a pipeline waits for ever at its step {}", s,
          begins_[s].size());
  }
}

std::size_t PipelineClock::place(const PipelineStep& step) const {
  const int of_chunk = (step.forward ? 0 : strategy_.num_chunks()) + step.chunk;
  return static_cast<std::size_t>(of_chunk) * static_cast<std::size_t>(microbatches_) +
         static_cast<std::size_t>(step.microbatch);
}

std::vector<PipelineRow> PipelineClock::rows(int stage) const {
  using Kind = PipelineRow::Kind;
  const int chunks = strategy_.num_chunks();
  const std::vector<PipelineStep>& steps = steps_[static_cast<std::size_t>(stage)];
  const std::vector<std::int64_t>& begins = begins_[static_cast<std::size_t>(stage)];
  // A receive for `step`: the index of the step that it precedes, and when the message is sent.
  struct Received {
    std::size_t before;
    std::int64_t sent;
    PipelineStep step;
  };
  std::vector<Received> received;
  for (const PipelineStep& step : steps) {
    const std::optional<int> from = asked_of(step, chunks);
    if (!from || *from % strategy_.stages == stage) continue;
    const std::int64_t sent = ended_[place({step.forward, *from, step.microbatch})];
    const auto at = std::lower_bound(begins.begin(), begins.end(), sent) - begins.begin();
    received.push_back({static_cast<std::size_t>(at), sent, step});
  }
  std::ranges::stable_sort(received, {}, [](const Received& r) { return std::pair(r.before, r.sent); });
  std::vector<PipelineRow> rows;
  for (std::size_t k = 0, next = 0; k < steps.size(); ++k) {
    for (; next < received.size() && received[next].before == k; ++next)
      rows.push_back({Kind::receive, received[next].step});
    const PipelineStep& step = steps[k];
    rows.push_back({Kind::step, step});
    const int after = step.forward ? step.chunk + 1 : step.chunk - 1;
    if (after >= 0 && after < chunks && after % strategy_.stages != stage) rows.push_back({Kind::send, step});
  }
  return rows;
}

std::vector<std::vector<PipelineRow>> pipeline_rows(const PipelineStrategy& strategy, int microbatches) {
  const PipelineClock clock(strategy, microbatches);
  std::vector<std::vector<PipelineRow>> rows;
  for (int stage = 0; stage < strategy.stages; ++stage) rows.push_back(clock.rows(stage));
  return rows;
}

std::vector<std::int64_t> layers_of_chunks(const PipelineStrategy& strategy, std::int64_t layers) {
  const std::int64_t chunks = strategy.num_chunks();
  if (layers == 0) {
    fail(error(ErrorKind::unsupported, "the model has no layers that repeat, between which a pipeline would be cut")
             .hinted("a mesh without the axis pipe"));
  }
  if (!strategy.layers.empty()) {
    const std::int64_t sum = std::accumulate(strategy.layers.begin(), strategy.layers.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(strategy.layers.size()) != chunks || sum != layers) {
      fail(error(ErrorKind::invalid, "layers of a pipeline: {} chunks with {} layers; it has {} chunks, the model {}",
                 strategy.layers.size(), sum, chunks, layers));
    }
    return strategy.layers;
  }
  if (layers < chunks) {
    fail(error(ErrorKind::invalid, "{} layers do not fill {} chunks of a pipeline ({} stages of {})", layers, chunks,
               strategy.stages, strategy.chunks_per_stage)
             .hinted(fmt::format("the axis has at most {} stages", layers / strategy.chunks_per_stage)));
  }
  std::vector<std::int64_t> each(static_cast<std::size_t>(chunks), layers / chunks);
  const std::int64_t rest = layers % chunks, first = (chunks - rest) / 2;
  for (std::int64_t c = first; c < first + rest; ++c) ++each[static_cast<std::size_t>(c)];
  return each;
}

std::vector<std::int64_t> kind_of_stage(const PipelineStrategy& strategy, std::span<const std::int64_t> layers,
                                        std::span<const std::int64_t> stacks, int stage) {
  std::vector<std::int64_t> kind{stage == 0, stage == strategy.stages - 1};
  std::int64_t first = 0;  // first layer of the chunk
  for (int c = 0; c < strategy.num_chunks(); ++c) {
    const std::int64_t last = first + layers[static_cast<std::size_t>(c)];
    std::int64_t begin = 0;  // first layer of the stack
    for (const std::int64_t stack : stacks) {
      if (c % strategy.stages == stage)
        kind.push_back(std::max<std::int64_t>(0, std::min(last, begin + stack) - std::max(first, begin)));
      begin += stack;
    }
    first = last;
  }
  return kind;
}

int most_in_flight(std::span<const PipelineRow> rows, const PipelineRow& made, const PipelineRow& done) {
  const auto alike = [](const PipelineRow& a, const PipelineRow& b) {
    return a.kind == b.kind && a.step.forward == b.step.forward && a.step.chunk == b.step.chunk;
  };
  int now = 0, most = 0;
  for (const PipelineRow& row : rows) {
    if (alike(row, made)) most = std::max(most, ++now);
    if (alike(row, done)) --now;
  }
  return most;
}

int most_in_flight(std::span<const PipelineRow> rows, int chunk) {
  return most_in_flight(rows, {PipelineRow::Kind::step, {true, chunk, 0}},
                        {PipelineRow::Kind::step, {false, chunk, 0}});
}

}  // namespace systole
