// Every gradient against finite differences in f64: with y = Σ w·op(x) and a random direction d,
// (y(x + h d) - y(x - h d)) / 2h = <dy/dx, d>. h = cbrt(eps) balances the truncation h² against the rounding eps/h,
// both of order eps^(2/3) = 4e-11 of the terms.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "describe/ir/evaluate.h"
#include "describe/ops/testing/list.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Ops whose gradient finite differences cannot check, and why.
const std::map<std::string, std::string>& exempt() {
  static const std::map<std::string, std::string> reasons = {
      {"stochastic_round", "rounds: its gradient takes it for the identity (cast_test.cc)"},
      {"repeat", "autodiff builds it (autodiff_test.cc)"},
      {"fusion", "is made after differentiation"},
  };
  return reasons;
}

// One node and its gradient in a single graph.
class OneNode final : public GradientCall {
 public:
  OneNode(const OpCase& call, const OpDef& op) : call_(call), types_(call.operand_types()), graph_("gradient") {
    for (std::size_t i = 0; i < types_.size(); ++i)
      operands_.push_back(graph_.input("x" + std::to_string(i), types_[i]));
    results_ = graph_.apply(op, operands_, call.attrs);
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const bool chosen = call.cotangents.empty() || std::find(call.cotangents.begin(), call.cotangents.end(),
                                                               static_cast<int>(r)) != call.cotangents.end();
      cotangents_.push_back(chosen && is_float(results_[r].dtype())
                                ? std::optional(graph_.input("w" + std::to_string(r), results_[r].type()))
                                : std::nullopt);
    }
    gradients_ = op.gradient(*this);
    CHECK(gradients_.size() == types_.size(), "{} gradients for {} operands", gradients_.size(), types_.size());
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (gradients_[i]) graph_.output("d" + std::to_string(i), *gradients_[i]);
    }
  }

  const Attrs& attrs() const override { return call_.attrs; }
  int num_operands() const override { return static_cast<int>(types_.size()); }
  const Type& operand_type(int i) const override { return types_[static_cast<std::size_t>(i)]; }
  const Type& result_type(int i) const override { return results_[static_cast<std::size_t>(i)].type(); }
  Value operand(int i) override { return operands_[static_cast<std::size_t>(i)]; }
  Value result(int i) override { return results_[static_cast<std::size_t>(i)]; }
  std::optional<Value> cotangent(int r) const override { return cotangents_[static_cast<std::size_t>(r)]; }
  bool needs(int i) const override { return is_float(types_[static_cast<std::size_t>(i)].dtype); }
  Graph& graph() override { return graph_; }

  std::vector<bool> has_cotangent() const {
    std::vector<bool> has;
    for (const auto& cotangent : cotangents_) has.push_back(cotangent.has_value());
    return has;
  }
  const Gradients& gradients() const { return gradients_; }

 private:
  const OpCase& call_;
  std::vector<Type> types_;
  Graph graph_;
  std::vector<Value> operands_, results_;
  std::vector<std::optional<Value>> cotangents_;
  Gradients gradients_;
};

HostTensor random_like(const Type& type, PhiloxStream& random) {
  HostTensor tensor(type.dtype, type.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 2 * random.uniform() - 1);
  return tensor;
}

struct Dot {
  double value = 0, size = 0;  // Σ a b and Σ |a b|
  void add(const HostTensor& a, const HostTensor& b) {
    for (std::int64_t i = 0; i < a.size(); ++i) {
      value += a.at(i) * b.at(i);
      size += std::fabs(a.at(i) * b.at(i));
    }
  }
};

Dot weighted(const OpCase& call, const OpDef& op, const std::vector<HostTensor>& x, const std::vector<HostTensor>& w,
             const std::vector<bool>& has) {
  const std::vector<HostTensor> y = run_reference(op, call.attrs, x);
  Dot sum;
  std::size_t next = 0;
  for (std::size_t r = 0; r < y.size(); ++r) {
    if (has[r]) sum.add(y[r], w[next++]);
  }
  return sum;
}

void compare_with_differences(const OpCase& call, const OpDef& op) {
  OneNode node(call, op);
  PhiloxStream random(42);
  const std::vector<HostTensor> x = fill_operands(call);
  std::vector<HostTensor> w, inputs = x;
  const std::vector<bool> has = node.has_cotangent();
  for (std::size_t r = 0; r < has.size(); ++r) {
    if (has[r]) w.push_back(random_like(node.result_type(static_cast<int>(r)), random));
  }
  ASSERT_FALSE(w.empty()) << call.describe() << " has no float result";
  inputs.insert(inputs.end(), w.begin(), w.end());
  const std::vector<HostTensor> gradients = evaluate(node.graph(), inputs);

  const double eps = std::numeric_limits<double>::epsilon(), h = std::cbrt(eps);
  std::size_t next = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::optional<Value>& gradient = node.gradients()[i];
    if (!is_float(x[i].dtype())) {
      EXPECT_FALSE(gradient) << call.describe() << " has a gradient for its operand " << i << " of integers";
      continue;
    }
    if (gradient) {
      ASSERT_EQ(gradient->type(), node.operand_type(static_cast<int>(i))) << call.describe() << " operand " << i;
    }
    const HostTensor none(x[i].dtype(), x[i].shape());
    const HostTensor& analytic = gradient ? gradients[next++] : none;
    if (x[i].dtype() != DType::f64) continue;  // a scalar in f32 cannot be moved by h
    for (int trial = 0; trial < 2; ++trial) {
      const HostTensor d = random_like(node.operand_type(static_cast<int>(i)), random);
      std::vector<HostTensor> above = x, below = x;
      for (std::int64_t k = 0; k < d.size(); ++k) {
        above[i].set(k, x[i].at(k) + h * d.at(k));
        below[i].set(k, x[i].at(k) - h * d.at(k));
      }
      const Dot up = weighted(call, op, above, w, has), down = weighted(call, op, below, w, has);
      Dot slope;
      slope.add(analytic, d);
      const double numeric = (up.value - down.value) / (2 * h);
      const double allowed = 64 * h * h * (up.size + slope.size + static_cast<double>(call.reduction)) + 1e-300;
      EXPECT_NEAR(slope.value, numeric, allowed) << call.describe() << " operand " << i;
    }
  }
}

TEST(EveryOp, GradientIsFiniteDifferences) {
  std::set<std::string> tried;
  for (const OpCase& call : op_cases(DType::f64).good) {
    const OpDef& op = op_named(call.op);
    const bool floats = std::any_of(call.operands.begin(), call.operands.end(),
                                    [](const CaseOperand& o) { return o.type.dtype == DType::f64; });
    if (!op.gradient || !call.gradient || !floats || exempt().count(call.op)) continue;
    tried.insert(call.op);
    SCOPED_TRACE(call.describe());
    compare_with_differences(call, op);
  }
  for (const OpDef* op : all_ops()) {
    if (!op->gradient || exempt().count(op->name)) continue;
    EXPECT_TRUE(tried.count(op->name)) << op->name << " has a gradient that no case tries";
  }
}

}  // namespace
}  // namespace systole
