// Small training steps on XLA's CPU plugin beside the reference.

#include "execute/backends/xla/xla.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/training.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/executor.h"
#include "execute/runtime/initialize.h"
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
  const auto xla = make_xla_device(*it).value();
  const auto reference = make_reference_device(false);
  const Steps found = three_steps(*xla), expected = three_steps(*reference);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-5) << i;
  for (std::size_t i = 0; i < expected.a.size(); ++i) EXPECT_NEAR(found.a[i], expected.a[i], 1e-5) << i;
  EXPECT_LT(found.losses[2], found.losses[0]);
  EXPECT_EQ(xla->compiled().size(), 4u);  // forward, backward, update, snapshot
}

}  // namespace
}  // namespace systole
