// What is planned is what is served: the plan's memory is that of the engine's Program, and the plan's steps are those of
// the server's loop.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "describe/models/list.h"
#include "describe/stablehlo/module.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/initialize.h"
#include "execute/serve/serving_loop.h"
#include "predict/serving/serving_plan.h"

namespace systole {
namespace {

constexpr const char* kChat = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 2, width: 16, heads: 2, kv_heads: 1, mlp: 32, context: 32, vocabulary: 40 }
serve: { slots: 3, traffic: { rate: 1 } }
)";

class ServedIsPlanned : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine(const EngineOptions& options = {.slots = 3}) {
    std::unique_ptr<Engine> made = std::move(Engine::create(*model_, *device_, options)).value();
    for (const Parameter& p : model_->parameters())
      made->executor().write(made->program().value_named(p.name), 0, initial_value(p, 3).bytes()).value();
    return made;
  }
  const Workload workload_ = read_workload(kChat, "job.yaml").value();
  const std::unique_ptr<const Model> model_ = make_model(workload_.model);
  const std::unique_ptr<Device> device_ = make_reference_device();
};

TEST_F(ServedIsPlanned, memory_is_that_of_the_engines_program) {
  const std::unique_ptr<Engine> served = engine();
  const WorkspaceOf workspace_of = [&](const Graph& graph, const GraphNode& node) {
    return device_->workspace(graph, node);
  };
  MachineSpeed speed;  // without products, whose times stay unknown
  speed.chain = speed.kernel = speed.elementary = FlopRate(1e9);
  speed.memory = BytesPerSecond(1e9);
  ServingPlanner planner = ServingPlanner::create(workload_, {}).value();
  bool same = false;
  planner
      .add_here({.name = "reference",
                 .target = device_->target(),
                 .workspace_of = workspace_of,
                 .speed = speed,
                 .limit = Bytes(),
                 .disk = {}},
                [&](const Program& planned) {
                  same = hash_of(planned) == hash_of(served->program());
                  return Bytes();
                })
      .value();
  EXPECT_TRUE(same);
  const ServingMemory memory = planner.take().rows.front().memory;
  EXPECT_EQ(memory.total(), served->program().arena);
  EXPECT_EQ(memory.cache, memory_by_owner(served->program())[Residence::cache]);
  EXPECT_EQ(memory.cache.count(), 2 * 2 * 3 * 32 * 8 * 4);  // of keys and of values: layers, slots, tokens, head, f32
}

// What `serve.compute: bf16` plans: products of bf16, lowered for XLA, and the answers of f32 but for rounding.
TEST_F(ServedIsPlanned, computing_in_bf16_is_lowered_and_near_f32) {
  const std::unique_ptr<Engine> wide = engine(),
                                narrow = engine({.slots = 3, .compute = DType::bf16, .cache_type = DType::bf16});
  const Program& program = narrow->program();
  const std::string text = stablehlo::lower(program, program.function_named("decode.2")).text;
  std::size_t products = 0;
  for (std::size_t at = text.find("stablehlo.dot_general"); at != text.npos;
       at = text.find("stablehlo.dot_general", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.find("bf16>, tensor<") != line.npos) ++products;
  }
  EXPECT_GE(products, 7U) << "of a layer, and the head\n" << text;
  const std::int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6};
  for (Engine* one : {wide.get(), narrow.get()}) {
    one->prefill(0, prompt).value();
    const Engine::Next next[] = {{0, 7}};
    one->decode(next).value();
  }
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < wide->logits(0).size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(wide->logits(0)[i])));
    apart = std::max(apart, std::abs(static_cast<double>(wide->logits(0)[i]) - narrow->logits(0)[i]));
  }
  // Eight significant bits; a dozen roundings in each of two layers, and the head's.
  EXPECT_LE(apart, 25 * most / 256);
  EXPECT_GT(apart, 0);
}

// Moves by a second each time that it is asked, so that every prefill and every decode takes one.
class TickingClock : public FakeClock {
 public:
  Seconds now() override {
    advance(Seconds(1.0));
    return FakeClock::now();
  }
};

// Of the same requests, all there from the start: as many steps, and the same order in which answers end.
TEST_F(ServedIsPlanned, steps_are_those_of_the_servers_loop) {
  const std::pair<std::int64_t, double> rules[] = {{0, 0}, {4, 0}, {0, 1.5}, {0, 2.5}, {0, 3.5}};
  std::set<std::size_t> different;
  for (const auto& [beside, hold] : rules) {
    SCOPED_TRACE(fmt::format("{} tokens, {} s", beside, hold));
    const std::unique_ptr<Engine> served = engine();
    TickingClock clock;
    ServingLoop loop(*served, {.waiting = 64, .prefill_beside = beside, .hold = Seconds(hold), .clock = &clock});
    std::vector<ArrivingRequest> arrivals;
    std::vector<std::uint64_t> ended;
    for (std::uint64_t id = 0; id < 9; ++id) {
      const auto prompt = static_cast<std::int64_t>(3 + id * 2), answer = static_cast<std::int64_t>(1 + (id * 5) % 7);
      arrivals.push_back({Seconds(), prompt, answer, id < 6 ? "many" : "few"});
      SequenceRequest request;
      request.id = id;
      request.key = arrivals.back().key;
      request.prompt.assign(static_cast<std::size_t>(prompt), static_cast<std::int32_t>(id));
      request.max_tokens = answer;
      loop.add(std::move(request),
               {.token = [](std::int32_t) { return true; }, .end = [&ended, id](SequenceEnd) { ended.push_back(id); }})
          .value();
    }
    std::size_t steps = 0;
    while (loop.step().value()) ++steps;
    different.insert(steps);

    const EngineOptions options = completed(*model_, {.slots = 3});
    SimulatedServer server;
    for (const std::int64_t bucket : options.buckets) server.times.prefill.emplace_back(bucket, Seconds(1.0));
    for (const std::int64_t batch : options.batches) server.times.decode.emplace_back(batch, Seconds(1.0));
    server.limits = serving_limits(*model_, options, 64);
    server.limits.prefill_beside = beside;
    server.limits.hold = Seconds(hold);
    const SimulatedServing played = simulate(server, arrivals);
    EXPECT_EQ(played.steps.size(), steps);
    ASSERT_EQ(ended.size(), arrivals.size());
    for (std::size_t i = 1; i < ended.size(); ++i)
      EXPECT_LE(played.requests[ended[i - 1]].ended, played.requests[ended[i]].ended) << "request " << ended[i];
    for (std::size_t id = 0; id < arrivals.size(); ++id) EXPECT_EQ(played.requests[id].answer, arrivals[id].answer);
  }
  EXPECT_GE(different.size(), 3U) << "the rules decide something";
}

}  // namespace
}  // namespace systole
