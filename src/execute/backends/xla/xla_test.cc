// Small training steps on XLA's CPU plugin, compared with the reference.

#include "execute/backends/xla/xla.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "describe/ops/ops.h"
#include "describe/partition/training.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/executor.h"
#include "execute/runtime/initialize.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/testing/vendors_plugin.h"
#include "ground/tensor/buffer.h"

namespace systole {
namespace {

// y = tanh(x a) b, loss = sum (y - t)^2, four rows of three.
Graph bent_loss() {
  Graph g("bent");
  const Value a = g.parameter({"a", Type(DType::f32, {3, 5}, {"inputs", "mlp"}), {Init::Kind::normal, 0.5}}),
              b = g.parameter({"b", Type(DType::f32, {5}, {"mlp"}), {Init::Kind::normal, 0.5}});
  const Value x = g.input("x", Type(DType::f32, {4, 3}, {"batch", "inputs"})),
              t = g.input("t", Type(DType::f32, {4}, {"batch"}));
  const Value d = sub(contract(tanh(contract(x, a, "bi,im->bm")), b, "bm,m->b"), t);
  g.output("loss", sum_all(mul(d, d)));
  return g;
}

struct Steps {
  std::vector<double> losses, a, moments;
};

Steps three_steps(Device& device) {
  Strategy strategy;
  strategy.precision = {DType::f32, DType::f32, DType::f32, DType::f32};
  const Program program =
      training_program("bent", bent_loss(), std::nullopt, Mesh(), strategy, device.target(), nullptr);
  auto executor = Executor::create(program, device).value();
  initialize(*executor, 1).value();
  const auto put = [&](const char* name, std::vector<double> values) {
    const int v = program.value_named(name);
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    executor->write(v, 0, HostTensor(type.dtype, type.shape, values).bytes()).value();
  };
  const auto get = [&](const char* name) {
    const int v = program.value_named(name);
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    HostTensor t(type.dtype, type.shape);
    executor->read(v, 0, t.bytes()).value();
    return t.values();
  };
  Steps steps;
  for (int step = 0; step < 3; ++step) {
    put("x", {1, 2, 3, 0, 1, 0, -1, 0, 2, 1, 1, 1});
    put("t", {1, 2, 3, 4});
    put("rate", {0.1});
    put("label_count", {4});
    executor->run(program.schedule_named("train")).value();
    steps.losses.push_back(get("loss")[0]);
  }
  steps.a = get("a");
  return steps;
}

TEST(XlaDeviceOnCpu, three_steps_are_the_references) {
  NEEDS("cpu");
  const auto xla = open_xla(*it).value()->device(0).value();
  const auto reference = make_reference_device(false);
  const Steps found = three_steps(*xla), expected = three_steps(*reference);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-5) << i;
  for (std::size_t i = 0; i < expected.a.size(); ++i) EXPECT_NEAR(found.a[i], expected.a[i], 1e-5) << i;
  EXPECT_LT(found.losses[2], found.losses[0]);
  EXPECT_EQ(xla->compiled().size(), 4u);  // forward, backward, update, snapshot
  for (const XlaCompiled& one : xla->compiled()) EXPECT_EQ(one.again, "") << one.function;
  EXPECT_EQ(xla->kernels_used().back().rfind("4 compiled and 0 loaded in ", 0), 0u) << xla->kernels_used().back();
}

Function reversed(std::int64_t rows, DType dtype) {
  constexpr int kTurned[] = {1, 0};
  Function function;
  function.name = "turn";
  Graph g("turn");
  g.output("y", transpose(g.input("x", Type(dtype, {rows, 3}, {"batch", "inputs"})), kTurned));
  function.graph = std::move(g);
  function.inputs = {{0, false, false, 0}};
  function.outputs = {{1, false, false, 0}};
  return function;
}

// A function recompiled with other input types reports the input and the dim that changed.
TEST(XlaDeviceOnCpu, what_is_compiled_anew_says_why) {
  NEEDS("cpu");
  const auto xla = open_xla(*it).value()->device(0).value();
  const Function first = reversed(4, DType::f32);
  const auto executable = xla->compile(first).value();
  const auto memory = xla->allocate(Bytes(0)).value();
  const Type in(DType::f32, {4, 3}), out(DType::f32, {3, 4});
  const SlotAddress x{0, 0, 0, &in}, y{1, 0, 0, &out};
  const auto call = xla->bind(*executable, *memory, {std::span(&x, 1), std::span(&y, 1), 0}).value();
  WorkCounters counters;
  EXPECT_FALSE(xla->run(*call, counters).wait().ok()) << "nothing was written";
  const std::vector<std::byte> zeros(48);
  xla->copy_in(*memory, x, zeros).wait().value();
  xla->compile(reversed(5, DType::f32)).value();
  EXPECT_EQ(xla->compiled().back().again, "") << "before anything was run that is no news";
  xla->run(*call, counters).wait().value();
  xla->compile(reversed(6, DType::f32)).value();
  EXPECT_EQ(xla->compiled().back().again, "dim 0 (batch) of input 'x' is 6 and was 5");
  EXPECT_NE(xla->kernels_used()[3].find("compiled anew after it was run: dim 0 (batch) of input 'x'"),
            std::string::npos);
  xla->compile(reversed(6, DType::bf16)).value();
  EXPECT_NE(xla->compiled().back().again.find("input 'x' is bf16"), std::string::npos) << xla->compiled().back().again;
}

TEST(XlaDeviceOnCpu, as_many_devices_as_are_wanted) {
  NEEDS("cpu");
  XlaOptions options;
  options.devices = 3;
  options.makes_devices = true;
  const auto host = open_xla(*it, options).value();
  EXPECT_EQ(host->num_devices(), 3);
  EXPECT_TRUE(host->device(2).ok());
  EXPECT_FALSE(host->device(3).ok());
  options.makes_devices = false;
  options.devices = 1000;
  const auto too_many = open_xla(*it, options);
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.error().kind, ErrorKind::unsupported);
  EXPECT_NE(too_many.error().message.find("1000 wanted, and this process sees "), std::string::npos);
}

// A device kind's flags reach its compiler and are part of the cache key; explicit flags override them.
TEST(XlaDeviceOnCpu, flags_of_its_kind) {
  NEEDS("cpu");
  struct Keys : ExecutableCache {
    std::optional<std::string> find(const std::string& key) override {
      keys.insert(key);
      return std::nullopt;
    }
    void keep(const std::string&, std::string_view) override {}
    std::set<std::string> keys;
  };
  const auto cache = std::make_shared<Keys>();
  const auto compiled = [&](pjrt::CompilerFlags of_kind, pjrt::CompilerFlags asked) {
    XlaOptions options;
    options.cache = cache;
    options.flags = std::move(asked);
    options.flags_of = [of_kind = std::move(of_kind)](const std::string& kind) -> Result<pjrt::CompilerFlags> {
      EXPECT_EQ(kind, "cpu");
      return of_kind;
    };
    const auto xla = open_xla(*it, options).value()->device(0).value();
    return xla->compile(reversed(5, DType::f32)).ok();
  };
  EXPECT_TRUE(compiled({}, {}));
  EXPECT_TRUE(compiled({{"xla_cpu_enable_fast_math", true}}, {}));
  EXPECT_EQ(cache->keys.size(), 2u);
  EXPECT_TRUE(compiled({}, {{"xla_cpu_enable_fast_math", true}}));
  EXPECT_EQ(cache->keys.size(), 2u) << "the same flags";
  EXPECT_FALSE(compiled({{"xla_no_such_flag", true}}, {}));
  EXPECT_FALSE(compiled({{"xla_cpu_enable_fast_math", std::string("maybe")}}, {}));
  EXPECT_TRUE(compiled({{"xla_cpu_enable_fast_math", std::string("maybe")}}, {{"xla_cpu_enable_fast_math", false}}));
}

// A compiler refuses a flag that it does not know.
TEST(XlaExactFlags, every_compiler_takes_its_own) {
  NEEDS("gpu");
  pjrt::GpuFacts h100;  // only the facts that decide which kernels exist
  h100.name = "NVIDIA H100 80GB HBM3";
  h100.capability_major = 9;
  h100.cores = 132;
  h100.clock_ghz = 1.98;
  h100.memory = Bytes(80'000'000'000);
  h100.l2_cache = Bytes(50 << 20);
  h100.memory_bandwidth = BytesPerSecond(3.35e12);
  h100.shared_memory_per_block_optin = Bytes(227 << 10);
  h100.shared_memory_per_core = Bytes(228 << 10);
  const pjrt::Topology host = pjrt::Topology::create(*it, "", pjrt::gpu_topology_options(h100, {.devices = 1})).value();
  pjrt::CompileOptions options;
  options.flags = exact_flags(host.platform().value());
  EXPECT_EQ(options.flags.size(), 2u) << host.platform().value();
  const auto compiled = host.compile({.code = pjrt::kTwoOps}, options);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
  options.flags.emplace_back("xla_gpu_no_such_flag", true);
  EXPECT_FALSE(host.compile({.code = pjrt::kTwoOps}, options).ok());
  EXPECT_TRUE(exact_flags("tpu").empty());
}

// An exact executable has a hash, and the loaded one has the same hash.
TEST(XlaDeviceOnCpu, an_exact_executable_has_a_hash) {
  NEEDS("cpu");
  struct Kept : ExecutableCache {
    std::optional<std::string> find(const std::string& key) override {
      const auto found = all.find(key);
      return found == all.end() ? std::nullopt : std::optional(found->second);
    }
    void keep(const std::string& key, std::string_view bytes) override { all.emplace(key, bytes); }
    std::map<std::string, std::string> all;
  };
  const auto cache = std::make_shared<Kept>();
  const auto hashes = [&](bool exact) {
    XlaOptions options;
    options.cache = cache;
    options.exact = exact;
    const auto xla = open_xla(*it, options).value()->device(0).value();
    three_steps(*xla);
    return xla->executables();
  };
  const auto first = hashes(true);
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(cache->all.size(), 4u);
  EXPECT_EQ(hashes(true), first);
  EXPECT_TRUE(hashes(false).empty());
  EXPECT_EQ(cache->all.size(), 8u) << "the flags are of the key";
}

}  // namespace
}  // namespace systole
