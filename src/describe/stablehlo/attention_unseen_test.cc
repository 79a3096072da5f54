// NaN and infinities at positions that masks hide: the reference skips them, and so does what XLA computes.

#include <cmath>
#include <limits>

#include "describe/graph/ops/cases/list.h"
#include "describe/stablehlo/testing/xla.h"

namespace systole::stablehlo {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

// x[b, t, h, d]: one number of one head of one position of an entry.
void spoil(HostTensor& x, std::int64_t entry, std::int64_t position, double value) {
  const Shape& z = x.shape();
  x.set(((entry * z[1] + position) * z[2] + position % z[2]) * z[3] + 1, value);
}

struct Called {
  OpCase call;
  std::vector<HostTensor> operands, wanted;
};

// The forward op and its gradient, each entry of the batch with other numbers spoilt.
std::vector<Called> spoilt(const OpCase& forward, const OpCase& backward) {
  Called one{forward, fill_operands(forward), {}};
  HostTensor &q = one.operands[0], &k = one.operands[1], &v = one.operands[2];
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1];
  spoil(v, 0, keys / 2, kNan);
  spoil(v, 1, 1, kInf);
  spoil(k, 1, keys - 2, kNan);
  spoil(q, 2, queries - 1, kNan);
  spoil(v, 2, keys - 1, -kInf);
  one.wanted = run_reference(op_named("attention"), forward.attrs, one.operands);
  Called grad{backward, fill_operands(backward), {}};
  std::copy(one.operands.begin(), one.operands.begin() + 3, grad.operands.begin());
  std::copy(one.operands.begin() + 3, one.operands.end(), grad.operands.begin() + 6);
  std::copy(one.wanted.begin(), one.wanted.end(), grad.operands.begin() + 3);
  spoil(grad.operands[5], 2, 1, kNan);
  grad.wanted = run_reference(op_named("attention_grad"), backward.attrs, grad.operands);
  return {one, grad};
}

// Where a row of `want` is finite `got` is that; elsewhere it is not finite where `want` is not. How many rows were
// not.
std::int64_t expect_rows(HostTensor got, HostTensor want, const OpCase& call) {
  const std::int64_t d = want.shape().size() == 4 ? want.shape()[3] : 1;
  std::int64_t bad_rows = 0;
  for (std::int64_t row = 0; row < want.size(); row += d) {
    bool bad = false;
    for (std::int64_t i = row; i < row + d; ++i) {
      if (std::isfinite(want.at(i)) || want.at(i) == -kInf) continue;  // lse of a query that sees nothing is -inf
      bad = true;
      EXPECT_FALSE(std::isfinite(got.at(i))) << call.describe() << " element " << i;
    }
    bad_rows += bad ? 1 : 0;
    for (std::int64_t i = row; bad && i < row + d; ++i) {
      got.set(i, 0);
      want.set(i, 0);
    }
  }
  EXPECT_EQ(difference(got, want, tolerance_of(call, want.dtype(), DType::f32)), "") << call.describe();
  return bad_rows;
}

// lse[b, h, t] counts where the row of o[b, t, h, d] does.
void take_rows_of_o(HostTensor& lse, const HostTensor& o) {
  const Shape& z = o.shape();
  for (std::int64_t row = 0; row < z[0] * z[1] * z[2]; ++row) {
    const std::int64_t b = row / (z[1] * z[2]), t = row / z[2] % z[1], h = row % z[2];
    for (std::int64_t c = 0; c < z[3]; ++c) {
      if (!std::isfinite(o.at(row * z[3] + c))) lse.set((b * z[2] + h) * z[1] + t, kNan);
    }
  }
}

TEST(AttentionUnseen, WhatIsNotFiniteReachesOnlyThoseWhoSeeIt) {
  NEEDS("cpu");
  std::vector<Called> all;
  const std::vector<OpCase> cases = op_cases(DType::f32).good;
  for (std::size_t i = 0; i + 1 < cases.size(); ++i) {
    const OpCase& call = cases[i];
    const bool masked = call.note == "causal grouped" || call.note == "full segments grouped" ||
                        call.note == "causal segments offsets window 4 grouped" || call.note == "causal bias grouped";
    if (call.op != "attention" || !masked || call.operands[0].type.size(0) != 3) continue;
    for (Called& one : spoilt(call, cases[i + 1])) all.push_back(std::move(one));
  }
  ASSERT_EQ(all.size(), 8U);
  Graph graph("spoilt");
  std::vector<HostTensor> inputs;
  for (const Called& one : all) {
    std::vector<Value> values;
    for (const HostTensor& operand : one.operands) {
      values.push_back(graph.input("x" + std::to_string(inputs.size()), type_of(operand)));
      inputs.push_back(operand);
    }
    for (const Value result : graph.apply(one.call.op, values, one.call.attrs))
      graph.output("y" + std::to_string(graph.outputs().size()), result);
  }
  for (const AttentionBlocks& blocks : {AttentionBlocks(), AttentionBlocks{2, 1, 16}}) {
    LowerOptions options;
    options.attention_blocks = blocks;
    const std::vector<HostTensor> got = run(*it, lower(graph, options), inputs);
    std::size_t next = 0;
    for (const Called& one : all) {
      std::vector<HostTensor> wanted = one.wanted;
      if (one.call.op == "attention") take_rows_of_o(wanted[1], wanted[0]);
      for (std::size_t i = 0; i < wanted.size(); ++i, ++next) {
        HostTensor mine = got[next];
        if (one.call.op == "attention" && i == 1) take_rows_of_o(mine, wanted[0]);
        const std::int64_t bad = expect_rows(mine, wanted[i], one.call);
        EXPECT_GT(bad, 0) << one.call.describe() << " result " << i << ": nobody sees what was spoilt";
        EXPECT_LT(bad, wanted[i].shape().size() == 4 ? wanted[i].size() / wanted[i].shape()[3] : wanted[i].size() + 1);
      }
    }
  }
}

}  // namespace
}  // namespace systole::stablehlo
