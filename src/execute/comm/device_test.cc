// Collective nodes of a Program on the devices that run them: reference and cpu give the same bits, the bytes sent are
// those of the plan, and scratch comes from the arena.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/program/collectives_of.h"
#include "execute/backends/reference/reference.h"
#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "execute/runtime/executor.h"
#include "execute/runtime/testing/expect_planned_work.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole {
namespace {

using Make = std::function<std::unique_ptr<Device>()>;

std::vector<std::pair<const char*, Make>> devices() {
  std::vector<std::pair<const char*, Make>> all{{"reference", [] { return make_reference_device(); }}};
#ifdef SYSTOLE_HAS_CPU
  all.emplace_back("cpu", [] {
    CpuOptions options;
    options.threads = 1;
    return make_cpu_device(options).value();
  });
#endif
  return all;
}

// Sums, gathers, scatters and exchanges of x in f32 and bf16, along dims that are not outermost.
Graph some_of_each(std::int64_t parts) {
  Graph g("some");
  const Value x = g.input("x", Type(DType::f32, {parts * 2, 5, parts}));
  const Value b = cast(x, DType::bf16);
  g.output("sum", all_reduce(x, "data", parts));
  g.output("largest", all_reduce(b, "data", parts, "max"));
  g.output("sum16", all_reduce(b, "data", parts));
  g.output("whole", all_gather(x, "data", parts, 1));
  g.output("part", reduce_scatter(x, "data", parts, 2));
  g.output("part16", reduce_scatter(b, "data", parts, 0));
  g.output("turned", all_to_all(x, "data", parts, 2, 0));
  g.output("from_next", collective_permute(x, "data", parts, -1));
  return g;
}

Program program_on(Device& device, const Mesh& mesh, std::int64_t parts) {
  ProgramBuilder builder("some", mesh, device.target(),
                         [&](const Graph& g, const GraphNode& n) { return device.workspace(g, n); });
  Graph graph = some_of_each(parts);
  const auto add = [&](const std::string& name, const Type& type, Residence residence) {
    ProgramValue value;
    value.name = name, value.type = type, value.residence = residence;
    builder.add_value(value);
  };
  for (const GraphInput& input : graph.inputs()) add(input.name, graph.type(input.value), Residence::input);
  for (const GraphOutput& output : graph.outputs()) add(output.name, graph.type(output.value), Residence::output);
  builder.add_function("some", std::move(graph), {}, {});
  builder.add_schedule({"once", {Action{0}}});
  return builder.finish();
}

struct Outcome {
  std::vector<std::vector<std::byte>> outputs;
  WorkCounters counters;
  Work planned;
  std::int64_t sent = 0;  // planned
};

std::vector<Outcome> on_ranks(const Make& make, std::int32_t n) {
  const Mesh mesh = Mesh::make({{"data", n}}).value();
  auto transports = loopback(n, {Seconds(20)}).value();
  std::vector<Outcome> outcomes(static_cast<std::size_t>(n));
  std::vector<std::jthread> threads;
  for (std::int32_t r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<Device> device = make();
      const auto communicator = make_communicator(*transports[static_cast<std::size_t>(r)], mesh).value();
      device->connect(communicator.get());
      const Program program = program_on(*device, mesh, n);
      const auto executor = Executor::create(program, *device).value();
      const std::span<std::byte> x = executor->view(program.value_named("x"), 0);
      for (std::size_t i = 0; i < x.size() / 4; ++i)
        store(DType::f32, x.data(), static_cast<std::int64_t>(i), static_cast<double>(i % 17) - 8 + r * 0.25);
      ASSERT_TRUE(executor->run(program.schedules[0]).ok());
      Outcome& outcome = outcomes[static_cast<std::size_t>(r)];
      for (const Port& port : program.functions[0].outputs) {
        const std::span<std::byte> seen = executor->view(port.value, 0);
        outcome.outputs.emplace_back(seen.begin(), seen.end());
      }
      outcome.counters = executor->counters()[0];
      outcome.planned = program.functions[0].work;
      for (const GraphNode& node : program.functions[0].graph.nodes()) {
        if (!is_collective(node)) continue;
        const CollectiveCall call = collective_call(program.functions[0].graph, node);
        outcome.sent += bytes_sent(transfers_of(collective_on(call, mesh).value(), call.algorithm).value(), r).count();
      }
      EXPECT_LE(outcome.counters.high_water, executor->arena().count());
    });
  }
  threads.clear();
  return outcomes;
}

TEST(DeviceCollectives, are_the_same_bits_on_every_device_and_counted_as_planned) {
  for (const std::int32_t n : {2, 3, 4}) {
    std::vector<Outcome> reference;
    for (const auto& [name, make] : devices()) {
      const std::vector<Outcome> outcomes = on_ranks(make, n);
      if (reference.empty()) reference = outcomes;
      for (std::size_t r = 0; r < outcomes.size(); ++r) {
        EXPECT_EQ(outcomes[r].outputs, reference[r].outputs) << name << " rank " << r << " of " << n;
        expect_planned_work(outcomes[r].planned, outcomes[r].counters);
        EXPECT_EQ(outcomes[r].counters.bytes_sent, outcomes[r].sent) << name;
        EXPECT_GT(outcomes[r].sent, 0);
      }
      // The sum of the first element: Σ (-8 + r / 4).
      EXPECT_EQ(load(DType::f32, outcomes[0].outputs[0].data(), 0), -8.0 * n + 0.25 * n * (n - 1) / 2) << name;
      EXPECT_EQ(load(DType::bf16, outcomes[0].outputs[2].data(), 0), -8.0 * n + 0.25 * n * (n - 1) / 2) << name;
    }
  }
}

TEST(DeviceCollectives, of_many_parts_need_others_and_of_one_part_nobody) {
  for (const auto& [name, make] : devices()) {
    const std::unique_ptr<Device> device = make();
    const Program several = program_on(*device, Mesh::parse("data=2").value(), 2);
    const auto refused = Executor::create(several, *device);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
    EXPECT_NE(refused.error().message.find("all_reduce over 'data' of 2 parts"), std::string::npos)
        << refused.error().message;

    const Program one = program_on(*device, Mesh::parse("data=1").value(), 1);
    const auto executor = Executor::create(one, *device).value();
    const std::span<std::byte> x = executor->view(one.value_named("x"), 0);
    for (std::size_t i = 0; i < x.size() / 4; ++i) store(DType::f32, x.data(), static_cast<std::int64_t>(i), i * 0.5);
    ASSERT_TRUE(executor->run(one.schedules[0]).ok());
    for (const char* same : {"sum", "whole", "part", "turned"}) {
      const std::span<std::byte> y = executor->view(one.value_named(same), 0);
      EXPECT_TRUE(std::ranges::equal(x, y)) << name << " " << same;
    }
    EXPECT_EQ(executor->counters()[0].bytes_sent, 0);
  }
}

// Four layers of x ← tanh(x·w), with w sharded and its partial sums reduce-scattered (ZeRO-3).
Graph stored_in_parts(std::int64_t parts) {
  Graph body("layer");
  const Value x = body.input("x", Type(DType::f32, {6, 12})), w = body.input("w", Type(DType::f32, {12 / parts, 12}));
  const Value whole = all_gather(cast(w, DType::bf16), "fsdp", parts, 0);
  const Value y = tanh(contract(cast(x, DType::bf16), whole, "be,eh->bh", DType::f32));
  body.output("x", y);
  body.output("terms", reduce_scatter(contract(x, y, "be,bh->eh"), "fsdp", parts, 0));
  Graph g("layers");
  const Value in = g.input("x", Type(DType::f32, {6, 12}));
  Parameter p;
  p.name = "w", p.type = Type(DType::f32, {4, 12 / parts, 12});
  const Value stored = g.parameter(p);
  const Repeat layers = repeat(std::move(body), 4, std::array{in}, std::array{stored}, {}, "layer", true);
  g.output("y", layers.carries[0]);
  g.output("terms", layers.outputs[0]);
  return g;
}

Outcome layers_on(Device& device, Communicator& communicator, std::int32_t n, bool overlap) {
  device.connect(&communicator);
  ProgramBuilder builder("layers", Mesh::make({{"fsdp", n}}).value(), device.target(),
                         [&](const Graph& g, const GraphNode& node) { return device.workspace(g, node); });
  builder.set_overlap(overlap);
  Graph graph = stored_in_parts(n);
  builder.add_parameters(graph);
  const auto add = [&](const std::string& name, const Type& type, Residence residence) {
    ProgramValue value;
    value.name = name, value.type = type, value.residence = residence;
    builder.add_value(value);
  };
  add("x", Type(DType::f32, {6, 12}), Residence::input);
  for (const GraphOutput& output : graph.outputs()) add(output.name, graph.type(output.value), Residence::output);
  builder.add_function("layers", std::move(graph), {}, {});
  builder.add_schedule({"once", {Action{0}}});
  const Program program = builder.finish();
  const auto executor = Executor::create(program, device).value();
  for (const char* name : {"x", "w"}) {
    const std::span<std::byte> bytes = executor->view(program.value_named(name), 0);
    for (std::size_t i = 0; i < bytes.size() / 4; ++i)
      store(DType::f32, bytes.data(), static_cast<std::int64_t>(i), (static_cast<double>(i * 7 % 29) - 14) / 31);
  }
  Outcome outcome;
  for (int time = 0; time < 3; ++time) EXPECT_TRUE(executor->run(program.schedules[0]).ok());
  for (const Port& port : program.functions[0].outputs) {
    const std::span<std::byte> seen = executor->view(port.value, 0);
    outcome.outputs.emplace_back(seen.begin(), seen.end());
  }
  outcome.counters = executor->counters()[0];
  outcome.planned = program.functions[0].work * 3;
  outcome.sent = bytes_sent(program, program.functions[0], communicator.rank()).count() * 3;
  EXPECT_LE(outcome.counters.high_water, executor->arena().count());
  return outcome;
}

TEST(DeviceCollectives, beside_other_work_are_the_same_bits_and_bytes) {
  for (const std::int32_t n : {2, 3}) {
    for (const auto& [name, make] : devices()) {
      auto transports = loopback(n, {Seconds(20)}).value();
      const Mesh mesh = Mesh::make({{"fsdp", n}}).value();
      std::vector<std::jthread> threads;
      for (std::int32_t r = 0; r < n; ++r) {
        threads.emplace_back([&, r] {
          const auto communicator = make_communicator(*transports[static_cast<std::size_t>(r)], mesh).value();
          const Outcome with = layers_on(*make(), *communicator, n, true);
          const Outcome without = layers_on(*make(), *communicator, n, false);
          EXPECT_EQ(with.outputs, without.outputs) << name;
          EXPECT_EQ(with.counters.bytes_sent, with.sent);
          EXPECT_EQ(without.counters.bytes_sent, with.sent);
          EXPECT_GT(with.sent, 0);
          expect_planned_work(with.planned, with.counters);
        });
      }
    }
  }
}

// An error of the transport ends the run, with its message.
TEST(DeviceCollectives, an_error_of_the_transport_ends_the_run) {
  for (const auto& [name, make] : devices()) {
    const Mesh mesh = Mesh::parse("data=2").value();
    auto transports = loopback(2, {Seconds(0.2)}).value();
    const std::unique_ptr<Device> device = make();
    const auto communicator = make_communicator(*transports[0], mesh).value();
    device->connect(communicator.get());
    const Program program = program_on(*device, mesh, 2);
    const auto executor = Executor::create(program, *device).value();
    const Status ended = executor->run(program.schedules[0]);
    ASSERT_FALSE(ended.ok()) << name;
    EXPECT_NE(ended.error().message.find("for rank 1"), std::string::npos) << ended.error().message;
  }
}

}  // namespace
}  // namespace systole
