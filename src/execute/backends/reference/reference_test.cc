#include "execute/backends/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ops/ops.h"
#include "describe/partition/training.h"
#include "execute/runtime/executor.h"
#include "execute/runtime/initialize.h"

namespace systole {
namespace {

// y = x w, loss = sum (y - t)^2, four rows of three.
Graph linear_loss() {
  Graph g("linear");
  const Value w = g.parameter({"w", Type(DType::f32, {3}, {"inputs"}), {Init::Kind::normal, 0.5}});
  const Value x = g.input("x", Type(DType::f32, {4, 3}, {"batch", "inputs"})),
              t = g.input("t", Type(DType::f32, {4}, {"batch"}));
  const Value d = sub(contract(x, w, "bi,i->b"), t);
  g.output("loss", sum_all(mul(d, d)));
  return g;
}

TEST(Reference, a_step_of_sgd_is_what_one_computes_by_hand) {
  auto device = make_reference_device();
  Strategy strategy;
  strategy.precision = {DType::f64, DType::f64, DType::f64, DType::f64};
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  const Program program =
      training_program("linear", linear_loss(), std::nullopt, Mesh(), strategy, device->target(), nullptr);
  auto executor = Executor::create(program, *device).value();
  ASSERT_TRUE(initialize(*executor, 1).ok());
  const auto put = [&](const char* name, std::vector<double> values) {
    const int v = program.value_named(name);
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    ASSERT_TRUE(executor->write(v, 0, HostTensor(type.dtype, type.shape, values).bytes()).ok());
  };
  const auto get = [&](const char* name) {
    const int v = program.value_named(name);
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    HostTensor t(type.dtype, type.shape);
    EXPECT_TRUE(executor->read(v, 0, t.bytes()).ok());
    return t.values();
  };
  const std::vector<double> x{1, 2, 3, 0, 1, 0, -1, 0, 2, 1, 1, 1}, t{1, 2, 3, 4}, w{0.5, -1, 0.25};
  put("x", x);
  put("t", t);
  put("w", w);
  put("rate", {0.1});
  put("label_count", {4});
  ASSERT_TRUE(executor->run(program.schedule_named("train")).ok());
  double loss = 0;
  std::vector<double> expected = w;
  for (std::size_t b = 0; b < 4; ++b) {
    double d = -t[b];
    for (std::size_t i = 0; i < 3; ++i) d += x[b * 3 + i] * w[i];
    loss += d * d;
    for (std::size_t i = 0; i < 3; ++i) expected[i] -= 0.1 * 2 * d * x[b * 3 + i] / 4;
  }
  EXPECT_NEAR(get("loss")[0], loss, 1e-12);
  const std::vector<double> after = get("w");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(after[i], expected[i], 1e-12);
  EXPECT_EQ(get("skipped")[0], 0);
  EXPECT_EQ(get("updates")[0], 1);

  // A gradient that is not finite changes nothing, and is counted.
  put("x", {1, 2, 3, 0, INFINITY, 0, -1, 0, 2, 1, 1, 1});
  ASSERT_TRUE(executor->run(program.schedule_named("train")).ok());
  EXPECT_EQ(get("w"), after);
  EXPECT_EQ(get("skipped")[0], 1);
  EXPECT_EQ(get("updates")[0], 1);
}

}  // namespace
}  // namespace systole
