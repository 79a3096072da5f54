// A fused step equals the unfused one: the same bits on every device, and counted work equals planned work.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"

namespace systole::laws {
namespace {

void expect_joined_is_the_same(const Model& model, const Strategy& strategy, const char* mesh_text) {
  SCOPED_TRACE(fmt::format("{} on '{}', {} microbatches", model.family(), mesh_text, strategy.microbatches));
  const Batch batch = language_batch(4, 11, 3);
  const Mesh mesh = Mesh::parse(mesh_text).value();
  const auto reference = [](std::int64_t) { return make_reference_device(); };
  TinyMesh apart(model, 4, strategy, mesh, true, reference), one(model, 4, strategy, mesh, true, reference, true);
  for (TinyMesh* each : {&apart, &one}) {
    each->begin(batch);
    for (int step = 0; step < 2; ++step) each->step();
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(one.program().schedule_named("train").actions.size(), 1U);
  expect_planned(one, 2);
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    for (const ProgramValue& value : one.program().values) {
      if (value.residence != Residence::parameter && value.residence != Residence::state &&
          value.residence != Residence::output)
        continue;
      if (value.name.starts_with("evaluate/")) continue;
      EXPECT_EQ(one.job(rank).tensor(value.name), apart.job(rank).tensor(value.name)) << value.name;
    }
    EXPECT_EQ(one.job(rank).loss(), apart.job(rank).loss());
  }
  EXPECT_EQ(one.program().find_value("gradient/" + one.program().values[0].name), std::nullopt)
      << "what lives inside the step is no value";
}

TEST(Joined, is_the_same_step) {
  const auto gpt = make_decoder(tiny_gpt());
  expect_joined_is_the_same(*gpt, bf16_strategy(), "");
  expect_joined_is_the_same(*gpt, f32_strategy(), "fsdp=2");
  expect_joined_is_the_same(*gpt, bf16_strategy(), "data=2 model=2");
}

TEST(Joined, microbatches_are_a_loop_in_it) {
  const auto gpt = make_decoder(tiny_gpt());
  for (const auto& [microbatches, mesh] : {std::pair(4, ""), {2, "fsdp=2"}}) {
    Strategy strategy = f32_strategy();
    strategy.microbatches = microbatches;
    expect_joined_is_the_same(*gpt, strategy, mesh);
    expect_joined_is_the_same(*make_decoder(tiny_mixture()), strategy, mesh);
  }
}

TEST(Joined, exact_training_is_refused_by_name) {
  Strategy strategy = f32_strategy();
  strategy.logical_shards = 2;
  const auto gpt = make_decoder(tiny_gpt());
  try {
    TinyJob(*gpt, 4, strategy, make_reference_device(), false, {Mesh(), 0, true});
    FAIL() << "a step of logical shards in sequence became one function";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::unsupported);
    EXPECT_NE(failure.error().message.find("is of exact training"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace systole::laws
