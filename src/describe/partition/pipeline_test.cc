#include "describe/partition/pipeline.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "ground/base/error.h"

namespace systole {
namespace {

using Kind = PipelineStrategy::Kind;

std::string text(std::span<const PipelineStep> steps) {
  std::string line;
  for (const PipelineStep& step : steps)
    line += fmt::format("{}{}{}.{}", line.empty() ? "" : " ", step.forward ? "F" : "B", step.chunk, step.microbatch);
  return line;
}

// Figure 4 of Narayanan et al., 2021, for its first and last stage.
TEST(Pipeline, one_forward_one_backward) {
  const auto stages = pipeline_steps({.stages = 3}, 4);
  EXPECT_EQ(text(stages[0]), "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
  EXPECT_EQ(text(stages[1]), "F1.0 F1.1 B1.0 F1.2 B1.1 F1.3 B1.2 B1.3");
  EXPECT_EQ(text(stages[2]), "F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 F2.3 B2.3");
}

TEST(Pipeline, gpipe) {
  EXPECT_EQ(text(pipeline_steps({.stages = 2, .kind = Kind::gpipe}, 2)[1]), "F1.0 F1.1 B1.0 B1.1");
}

TEST(Pipeline, interleaved) {
  const auto stages = pipeline_steps({.stages = 2, .chunks_per_stage = 2}, 4);
  EXPECT_EQ(text(stages[1]), "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3");
}

// Each step occurs once, no schedule deadlocks, and the microbatches in flight are as pipeline.h says.
// predict/schedule/pipeline_time_test.cc compares times with the papers.
TEST(Pipeline, every_schedule_ends) {
  for (const int stages : {1, 2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3}) {
      for (const int microbatches : {stages, 2 * stages, 4 * stages}) {
        for (const Kind kind : {Kind::gpipe, Kind::one_f_one_b}) {
          SCOPED_TRACE(
              fmt::format("{} stages of {}, {} microbatches, {}", stages, chunks, microbatches, name_of(kind)));
          const PipelineStrategy strategy{stages, chunks, kind};
          const auto steps = pipeline_steps(strategy, microbatches);
          const auto rows = pipeline_rows(strategy, microbatches);
          std::set<std::tuple<bool, int, int>> seen;
          for (int s = 0; s < stages; ++s) {
            for (const PipelineStep& step : steps[static_cast<std::size_t>(s)]) {
              EXPECT_TRUE(seen.insert({step.forward, step.chunk, step.microbatch}).second);
              EXPECT_EQ(step.chunk % stages, s);
            }
            if (chunks == 1) {
              EXPECT_EQ(most_in_flight(rows[static_cast<std::size_t>(s)], s),
                        kind == Kind::gpipe ? microbatches : std::min(stages - s, microbatches));
            }
          }
          EXPECT_EQ(static_cast<int>(seen.size()), 2 * strategy.num_chunks() * microbatches);
        }
      }
    }
  }
}

// Simulates the stages with rendezvous transfers: a group of transfers with no step between them ends when each message
// has met its peer's row, which is in the peer's current group. Messages between two stages keep their order.
bool ends(const PipelineStrategy& strategy, int microbatches) {
  using Row = PipelineRow::Kind;
  const auto stages = pipeline_rows(strategy, microbatches);
  const int n = strategy.stages;
  std::vector<std::size_t> at(stages.size(), 0);
  std::vector<std::set<std::size_t>> done(stages.size());  // rows of the current group
  const auto peer = [&](const PipelineRow& row) {
    const bool up = row.step.forward == (row.kind == Row::send);
    return static_cast<std::size_t>((row.step.chunk + (up ? 1 : -1)) % n);
  };
  const auto group_end = [&](std::size_t s) {
    std::size_t end = at[s];
    while (end < stages[s].size() && stages[s][end].kind != Row::step) ++end;
    return end;
  };
  // The first row of the current group that is not done, of this kind and with that peer; the end if there is none.
  const auto first = [&](std::size_t s, Row kind, std::size_t with) {
    for (std::size_t r = at[s]; r < group_end(s); ++r) {
      if (stages[s][r].kind == kind && peer(stages[s][r]) == with && !done[s].contains(r)) return r;
    }
    return stages[s].size();
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      while (at[s] < stages[s].size() && stages[s][at[s]].kind == Row::step) ++at[s], moved = true;
      for (std::size_t r = at[s]; r < group_end(s); ++r) {
        const PipelineRow& row = stages[s][r];
        if (row.kind != Row::send || done[s].contains(r) || first(s, Row::send, peer(row)) != r) continue;
        const std::size_t to = peer(row), other = first(to, Row::receive, s);
        if (other == stages[to].size()) continue;
        const PipelineStep& asks = stages[to][other].step;
        EXPECT_EQ(asks.chunk, row.step.chunk + (row.step.forward ? 1 : -1));
        EXPECT_EQ(asks.microbatch, row.step.microbatch);
        done[s].insert(r);
        done[to].insert(other);
        moved = true;
      }
      if (group_end(s) > at[s] && done[s].size() == group_end(s) - at[s]) {
        at[s] = group_end(s);
        done[s].clear();
        moved = true;
      }
    }
  }
  bool all = true;
  for (std::size_t s = 0; s < stages.size(); ++s) all = all && at[s] == stages[s].size();
  return all;
}

TEST(Pipeline, no_ring_of_waiting_stages) {
  for (const int stages : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3, 4}) {
      for (const int microbatches : {stages, 2 * stages, 3 * stages, 8 * stages}) {
        for (const Kind kind : {Kind::gpipe, Kind::one_f_one_b}) {
          EXPECT_TRUE(ends({stages, chunks, kind}, microbatches))
              << fmt::format("{} stages of {}, {} microbatches, {}", stages, chunks, microbatches, name_of(kind));
        }
      }
    }
  }
  EXPECT_TRUE(ends({.stages = 4}, 3));
}

TEST(Pipeline, layers) {
  EXPECT_EQ(layers_of_chunks({.stages = 4}, 8), (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(layers_of_chunks({.stages = 4}, 6), (std::vector<std::int64_t>{1, 2, 2, 1}));
  EXPECT_EQ(layers_of_chunks({.stages = 2, .layers = {5, 3}}, 8), (std::vector<std::int64_t>{5, 3}));
}

template <typename Fn>
std::string refusal(Fn&& fn) {
  try {
    fn();
  } catch (const Failure& failure) { return failure.error().message + " | " + failure.error().hint; }
  return "";
}

TEST(Pipeline, refusals) {
  EXPECT_EQ(refusal([] { layers_of_chunks({.stages = 4, .chunks_per_stage = 2}, 6); }),
            "6 layers do not fill 8 chunks of a pipeline (4 stages of 2) | the axis has at most 3 stages");
  EXPECT_EQ(refusal([] {
              layers_of_chunks({.stages = 2, .layers = {4, 3}}, 8);
            }),
            "layers of a pipeline: 2 chunks with 7 layers; it has 2 chunks, the model 8 | ");
  EXPECT_EQ(
      refusal([] { layers_of_chunks({.stages = 2}, 0); }),
      "the model has no layers that repeat, between which a pipeline would be cut | a mesh without the axis pipe");
  EXPECT_EQ(refusal([] { pipeline_steps({.stages = 4, .chunks_per_stage = 2}, 6); }),
            "an interleaved pipeline of 4 stages takes microbatches by the 4; there are 6 | make them 8, or have one "
            "chunk a stage");
}

}  // namespace
}  // namespace systole
