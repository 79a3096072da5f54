// The cost of building a candidate's Programs; a search builds hundreds of them. Allocations dominate that time, and
// unlike time their number is the same on every machine.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "predict/plan/candidate.h"
#include "predict/plan/testing/tiny_workload.h"

namespace {
thread_local std::int64_t allocations = 0;
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* place = std::malloc(bytes > 0 ? bytes : 1)) return place;
  throw std::bad_alloc();
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }
#endif

namespace systole {
namespace {

std::int64_t allocations_of(const Candidate& candidate, bool placed) {
  const Workload workload = tiny_workload("preset: llama3.1-405b", 1024);
  programs_of(workload, candidate, target_of_accelerators(), placed).value();  // warm-up: one-time allocations
  const std::int64_t before = allocations;
  programs_of(workload, candidate, target_of_accelerators(), placed).value();
  return allocations - before;
}

TEST(Programs, are_built_with_few_allocations) {
  Candidate candidate;
  candidate.data = 2, candidate.fsdp = 2, candidate.model = 8, candidate.microbatches = 2;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has the allocator";
#endif
  EXPECT_GT(allocations_of(candidate, false), 0);  // allocations are counted at all
  EXPECT_LE(allocations_of(candidate, false), 45000);
  EXPECT_LE(allocations_of(candidate, true), 63000);
}

// With sharded optimizer state, each shard of a parameter is updated where its state lies and then gathered, however
// many devices of `model` also shard it.
TEST(Programs, what_state_in_parts_updates_is_gathered_once) {
  const Workload workload = tiny_workload(kTinyModels[3], 64);
  for (const std::int64_t model : {1, 2, 4, 8}) {
    Candidate candidate;
    candidate.data = 2, candidate.fsdp = 4, candidate.model = model, candidate.stored = ZeroStage::state;
    const CandidatePrograms programs = programs_of(workload, candidate, target_of_accelerators(), false).value();
    std::size_t gathered = 0;
    for (const StretchRecord& stretch : programs.step.stages[0]->after) {
      if (stretch.function != "update") continue;
      for (const MessageRecord& message : stretch.messages) gathered += message.kind == CollectiveKind::all_gather;
    }
    std::size_t parameters = 0;
    for (const ProgramValue& value : programs.stages[0]->values) parameters += value.residence == Residence::parameter;
    EXPECT_EQ(gathered, parameters) << model;
  }
}

// Four stages: two of the encoder, two of the decoder, which also attends to the encoder's output.
TEST(Programs, stages_of_unlike_layers_are_unlike) {
  Candidate candidate;
  candidate.pipe = 4;
  candidate.microbatches = 4;
  const auto programs = programs_of(tiny_workload(kTinyModels[6], 4), candidate, target_of_accelerators(), false);
  ASSERT_TRUE(programs.ok()) << to_string(programs.error());
  ASSERT_EQ(programs->stages.size(), 4U);
  EXPECT_NE(programs->stages[1], programs->stages[2]);
  const auto parameters = [&](std::size_t stage) {
    std::int64_t elements = 0;
    for (const ProgramValue& value : programs->stages[stage]->values)
      elements += value.residence == Residence::parameter ? value.type.num_elements() : 0;
    return elements;
  };
  EXPECT_LT(parameters(1), parameters(2));
}

}  // namespace
}  // namespace systole
