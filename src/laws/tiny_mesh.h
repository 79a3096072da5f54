#pragma once
// A tiny job on all ranks of a mesh, each a thread with its own device, and a comparison of its work with the ranks'
// Programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "describe/ops/testing/cut.h"
#include "describe/ops/testing/op_case.h"
#include "describe/program/collectives_of.h"
#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "laws/tiny_laws.h"

namespace systole::laws {

// The same step on all ranks of a mesh, each a thread with its own device.
class TinyMesh {
 public:
  using MakeDevice = std::function<std::unique_ptr<Device>(std::int64_t rank)>;
  TinyMesh(const Model& model, std::int64_t rows, const Strategy& strategy, const Mesh& mesh, bool dropout,
           const MakeDevice& make_device, bool joined = false, const std::vector<std::int64_t>& lengths = {})
      : mesh_(mesh), transports_(loopback(static_cast<std::int32_t>(mesh.num_devices())).value()) {
    // Building a Program takes ten times as long as its step. Programs of ranks differ only if workers own logical
    // shards, or belong to several stages.
    std::shared_ptr<const Program> of_all;
    for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
      communicators_.push_back(make_communicator(*transports_[static_cast<std::size_t>(device)], mesh).value());
      std::unique_ptr<Device> made = make_device(device);
      made->connect(communicators_.back().get());
      jobs_.push_back(std::make_unique<TinyJob>(model, rows, strategy, std::move(made), dropout,
                                                TinyRank{mesh, device, joined, of_all, lengths}));
      if (strategy.logical_shards == 0 && !mesh.find(kPipelineAxis).ok()) of_all = jobs_.back()->shared_program();
    }
  }

  void begin(const Batch& batch) {
    for (auto& job : jobs_) {
      job->begin();
      job->set_batch(batch);
    }
  }

  void step() {
    on_all([](TinyJob& job) { job.step(); });
  }
  void run(const char* schedule) {
    on_all([schedule](TinyJob& job) { job.executor().run(job.program().schedule_named(schedule)).value(); });
  }

  void on_all(const std::function<void(TinyJob&)>& act) {
    std::vector<std::string> failed(jobs_.size());
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < jobs_.size(); ++r) {
      ranks.emplace_back([&, r] {
        try {
          act(*jobs_[r]);
        } catch (const Failure& failure) { failed[r] = to_string(failure.error()); }
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::string& text : failed) ASSERT_EQ(text, "");
  }

  // A whole value, assembled from all ranks.
  HostTensor whole(const std::string& name) {
    const ProgramValue& value = program().values[static_cast<std::size_t>(program().value_named(name))];
    std::vector<HostTensor> parts;
    for (auto& job : jobs_) parts.push_back(job->tensor(name));
    return uncut(parts, value.cut->whole.shape, value.cut->layout, program().mesh);
  }

  const Program& program() const { return jobs_[0]->program(); }
  TinyJob& job(std::size_t rank) { return *jobs_[rank]; }
  std::size_t size() const { return jobs_.size(); }

 private:
  Mesh mesh_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<TinyJob>> jobs_;
};

// With dims divisible by 2, 3, 4 and 6 devices, and dropout.
inline DecoderSpec divisible(DecoderSpec config) {
  config.width = 12;
  config.heads = 6;
  config.kv_heads = config.kv_heads == 1 ? 2 : config.kv_heads;
  config.head = 2;
  config.mlp = 18;
  config.vocabulary = 12;
  config.dropout = 0.25;
  return config;
}

// With experts, divisible by 2 and 3 devices, that drop tokens, and a shared expert.
inline DecoderSpec divisible_mixture() {
  DecoderSpec config = divisible(tiny_llama());
  config.mlp = 6;
  config.moe = {.experts = 6, .top_k = 2, .capacity_factor = 1, .shared_experts = 1, .balance = 0.5};
  return config;
}

// Each rank computed, moved and sent exactly what its Program states, as integers.
inline void expect_planned(TinyMesh& mesh, std::int64_t steps = 1, const std::string& schedule = "train") {
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) {
    const Program& program = mesh.job(rank).program();
    const Schedule& train = program.schedule_named(schedule);
    std::vector<std::int64_t> calls(program.functions.size(), 0);
    for (const Action& action : train.actions) calls[static_cast<std::size_t>(action.function)] += steps;
    for (std::size_t f = 0; f < calls.size(); ++f) {
      const Function& function = program.functions[f];
      SCOPED_TRACE(fmt::format("rank {} {}", rank, function.name));
      const WorkCounters& counted = mesh.job(rank).executor().counters()[f];
      expect_planned_work(function.work * calls[f], counted);
      EXPECT_EQ(counted.bytes_sent, bytes_sent(program, function, static_cast<std::int64_t>(rank)).count() * calls[f]);
    }
  }
}

// Takes the same step on one device and on the mesh: loss, norm, moments and parameters agree to 1e-12, or to the
// value's tolerance, and the work equals the plan. Returns the largest difference of a value, relative to its
// tolerance.
inline double expect_step_of_one(
    TinyMesh& mesh, TinyJob& one, const Batch& batch,
    const std::function<double(const ProgramValue&)>& tolerance = [](const ProgramValue&) { return 1e-12; }) {
  one.begin();
  one.set_batch(batch);
  one.step();
  mesh.begin(batch);
  mesh.step();
  if (::testing::Test::HasFatalFailure()) return 0;
  expect_planned(mesh);
  EXPECT_NEAR(mesh.job(0).loss(), one.loss(), 1e-12 * std::abs(one.loss()));
  EXPECT_NEAR(mesh.job(0).get("norm")[0], one.get("norm")[0], 1e-12 * one.get("norm")[0]);
  for (const char* count : {kExpertChoices, kDroppedChoices}) {
    if (mesh.program().find_value(count)) { EXPECT_EQ(mesh.job(0).sum(count), one.sum(count)) << count; }
  }
  double worst = 0;
  for (const ProgramValue& value : one.program().values) {
    if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
    const double apart = relative_difference(mesh.whole(value.name), one.tensor(value.name));
    EXPECT_LE(apart, tolerance(value)) << value.name;
    worst = std::max(worst, apart / tolerance(value));
  }
  return worst;
}

}  // namespace systole::laws
