// The law search-is-program: a cost composed from a family's few Programs equals that of the candidate's own Programs.
// Counts are small here; SYSTOLE_TEST_LONG=1 draws 10,000 candidates, SYSTOLE_TEST_SEED=n sets the first seed.

#include "predict/plan/composed_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "describe/program/collectives_of.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

struct Drawn {
  Candidate candidate;
  std::int64_t batch = 1;
};

Drawn draw(std::mt19937_64& random, const ModelSpec& model) {
  const auto one_of = [&](std::initializer_list<std::int64_t> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
  };
  Drawn drawn;
  Candidate& c = drawn.candidate;
  c.pipe = one_of({1, 1, 2, 3, 4});
  c.data = one_of({1, 1, 2, 3, 8});
  c.fsdp = one_of({1, 2, 3, 4, 8, 16});
  c.model = one_of({1, 1, 2, 4});
  if (model.experts() == 0) c.context = one_of({1, 1, 1, 2});
  if (model.experts() > 0) c.expert = one_of({1, 2, 4});
  c.stored = static_cast<ZeroStage>(random() % 4);
  c.recompute = static_cast<RecomputeSpec::Kind>(random() % 3);
  c.chunks = c.pipe > 1 ? one_of({1, 1, 2}) : 1;
  c.microbatches = c.chunks > 1 ? c.pipe * one_of({1, 2, 4}) : one_of({1, 2, 3, 8, 24});
  c.schedule = static_cast<PipelineSpec::Schedule>(random() % 2);
  drawn.batch = c.microbatches * c.row_parts() * one_of({1, 2, 3, 5}) - (random() % 4 == 0 ? 1 : 0);
  drawn.batch = std::max(drawn.batch, c.microbatches);
  return drawn;
}

// Ignores the order of messages: it follows the names of layers, and nothing depends on it.
std::string text_of(const FunctionRecord& function) {
  std::string text;
  for (const StretchRecord& s : function) {
    text += fmt::format(
        "{} x{} layers {}: moved {} kernels {} converted {} {} updated {} summed {} {} quantised {} flops {} {}\n",
        s.function, s.times, s.in_layers, s.moved, s.kernels, s.converted, s.converting, s.updated, s.summed, s.summing,
        s.quantised, s.flops, s.model_flops);
    for (const ProductDims& d : s.products)
      text += fmt::format("  product {} {} {} {}\n", d.batch, d.rows, d.columns, d.summed);
    for (const AttentionRecord& a : s.attention)
      text += fmt::format("  attention {} {} {} {} {}\n", a.shape.rows, a.shape.queries, a.shape.keys_of_row,
                          a.shape.keys, a.backward);
    std::vector<std::string> messages;
    for (const MessageRecord& m : s.messages)
      messages.push_back(fmt::format("  {} over {} {} bytes {} {} {} {}\n", name_of(m.kind), m.axes, name_of(m.dtype),
                                     m.bytes, static_cast<int>(m.carried), m.parameter, m.starts));
    std::ranges::sort(messages);
    for (const std::string& message : messages) text += message;
  }
  return text;
}

// Compares everything that is composed for a candidate with its Programs.
void expect_same(const ComposedCost& composed, const CandidatePrograms& programs, const Candidate& candidate) {
  ASSERT_EQ(composed.step.stages.size(), programs.stages.size());
  for (std::size_t s = 0; s < programs.stages.size(); ++s) {
    const Program& program = *programs.stages[s];
    const StageRecord &own = *composed.step.stages[s], &theirs = *programs.step.stages[s];
    EXPECT_EQ(text_of(own.after), text_of(theirs.after)) << "stage " << s;
    for (std::size_t c = 0; c < theirs.chunks.size(); ++c) {
      EXPECT_EQ(text_of(own.chunks[c].forward), text_of(theirs.chunks[c].forward)) << "stage " << s << " " << c;
      EXPECT_EQ(text_of(own.chunks[c].backward), text_of(theirs.chunks[c].backward)) << "stage " << s << " " << c;
    }
    const Schedule& train = program.schedule_named("train");
    const Work work = work_of(program, train);
    const StageTotals totals = totals_of(composed.step, s);
    EXPECT_EQ(totals.flops, work.flops) << "stage " << s;
    EXPECT_EQ(totals.model_flops, work.model_flops) << "stage " << s;
    const auto first = static_cast<std::int64_t>(s) * candidate.devices() / candidate.pipe;
    EXPECT_EQ(totals.sent.count(), bytes_sent(program, train, first).count()) << "stage " << s;
    Bytes state;
    for (const ProgramValue& value : program.values)
      if (value.residence == Residence::parameter || value.residence == Residence::state) state += value.type.bytes();
    EXPECT_EQ(composed.state_bytes(s).count(), state.count()) << "stage " << s;
    EXPECT_LE(composed.arena[s].count(), program.arena.count()) << "stage " << s;
    EXPECT_GT(composed.arena[s], state) << "stage " << s;
    EXPECT_LE(composed.activations[s], memory_parts(program, {}).activations) << "stage " << s;
    const MemoryParts besides = placeless_memory(program, {});
    EXPECT_EQ(composed.stages[s]->copies, besides.copies.count()) << "stage " << s;
    EXPECT_EQ(composed.stages[s]->logits, besides.logits) << "stage " << s;
  }
  for (const char* chip : {"h100", "v5p"}) {
    ClusterOptions options;
    options.devices = candidate.devices();
    const Cluster cluster = cluster_of(*catalog().find(chip).value(), options).value();
    const double own = step_time(step_parts(composed.step, cluster, {}), builtin_stacks()[0]).seconds,
                 theirs = step_time(step_parts(programs.step, cluster, {}), builtin_stacks()[0]).seconds;
    EXPECT_NEAR(own, theirs, 1e-9 * theirs) << chip;
  }
}

TEST(SearchIsProgram, composed_is_the_programs) {
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  const char* seed = std::getenv("SYSTOLE_TEST_SEED");
  std::mt19937_64 random(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
  std::map<const char*, std::unique_ptr<Composer>> composers;
  int composed_ones = 0, refused = 0, impossible = 0;
  const char* asked = std::getenv("SYSTOLE_TEST_COUNT");
  const int count = asked != nullptr ? std::atoi(asked) : all ? 10'000 : 40;
  for (int i = 0; composed_ones + refused < count && !testing::Test::HasFailure(); ++i) {
    const char* model = kTinyModels[random() % std::size(kTinyModels)];
    const Drawn drawn = draw(random, tiny_workload(model, 1).model);
    SCOPED_TRACE(fmt::format("{}: {}: batch {}, {}", i, model, drawn.batch, to_string(drawn.candidate)));
    std::unique_ptr<Composer>& composer = composers[model];
    if (composer == nullptr) composer = std::make_unique<Composer>(tiny_workload(model, 1), target_of_accelerators());
    const Result<CandidatePrograms> programs =
        programs_of(tiny_workload(model, drawn.batch), drawn.candidate, target_of_accelerators());
    const Result<ComposedCost> composed = composer->compose(drawn.candidate, drawn.batch);
    if (!programs.ok()) {
      EXPECT_FALSE(composed.ok()) << programs.error().message;
      ++impossible;
    } else if (!composed.ok()) {
      std::printf("refused: %s: %s\n", to_string(drawn.candidate).c_str(), composed.error().message.c_str());
      ++refused;
    } else {
      expect_same(composed.value(), programs.value(), drawn.candidate);
      ++composed_ones;
    }
  }
  std::printf("NOTE %d composed, %d refused, %d impossible\n", composed_ones, refused, impossible);
  EXPECT_GT(composed_ones, count * 8 / 10);
}

TEST(SearchIsProgram, keys_that_go_round_are_composed) {
  const char* grouped =
      "family: llama, layers: 12, width: 32, heads: 4, kv_heads: 2, mlp: 64, context: 24, vocabulary: 320";
  Workload asked = tiny_workload(grouped, 1);
  asked.context_parallel = ContextParallel::ring;
  const Composer composer(asked, target_of_accelerators());
  for (const std::int64_t parts : {2, 3}) {
    for (const std::int64_t pipe : {1, 2}) {
      Candidate candidate;
      candidate.context = parts;
      candidate.pipe = pipe;
      candidate.microbatches = 2 * pipe;
      candidate.stored = ZeroStage::parameters;
      (pipe == 1 ? candidate.fsdp : candidate.model) = 2;
      SCOPED_TRACE(to_string(candidate));
      Workload workload = tiny_workload(grouped, 24);
      workload.context_parallel = ContextParallel::ring;
      const auto programs = programs_of(workload, candidate, target_of_accelerators());
      expect_same(composer.compose(candidate, 24).value(), programs.value(), candidate);
      const auto permutes = [](const FunctionRecord& function) {
        std::int64_t count = 0;
        for (const StretchRecord& stretch : function) {
          for (const MessageRecord& message : stretch.messages)
            if (message.kind == CollectiveKind::collective_permute) count += stretch.times;
        }
        return count;
      };
      const StageRecord& stage = *programs.value().step.stages[0];
      EXPECT_EQ(permutes(stage.chunks[0].forward), 12 / pipe * 3 * (parts - 1));
    }
  }
}

// When stages share tied parameters, only the first chunk adds up their gradients.
TEST(SearchIsProgram, chunks_of_a_tied_model_are_composed) {
  const char* tied = "family: gpt, layers: 18, width: 32, heads: 4, context: 12, vocabulary: 320";
  const Composer composer(tiny_workload(tied, 1), target_of_accelerators());
  for (const auto stored : {ZeroStage::nothing, ZeroStage::state, ZeroStage::parameters}) {
    Candidate candidate;
    candidate.pipe = 3;
    candidate.chunks = 2;
    candidate.microbatches = 3;
    (stored == ZeroStage::nothing ? candidate.data : candidate.fsdp) = 2;
    candidate.stored = stored;
    SCOPED_TRACE(to_string(candidate));
    const auto programs = programs_of(tiny_workload(tied, 12), candidate, target_of_accelerators());
    expect_same(composer.compose(candidate, 12).value(), programs.value(), candidate);
  }
}

}  // namespace
}  // namespace systole
