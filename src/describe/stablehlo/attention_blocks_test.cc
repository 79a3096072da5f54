// Attention over many blocks: tiny blocks and groups compared with the op's reference, real block sizes at one length,
// and properties of the text.

#include <cstdlib>
#include <regex>

#include "describe/ops/ops.h"
#include "describe/ops/testing/list.h"
#include "describe/stablehlo/attention_blocks.h"
#include "describe/stablehlo/testing/xla.h"

namespace systole::stablehlo {
namespace {

// --- which pairs of blocks are processed

Attrs attrs_of(bool causal, std::int64_t window, bool offsets = false) {
  Attrs attrs{{"causal", causal}, {"scale", 0.5}, {"segments", false}, {"offsets", offsets}};
  if (window > 0) attrs.set("window", window);
  return attrs;
}

AttentionCut cut_of(std::int64_t t, std::int64_t s, const Attrs& attrs, const AttentionBlocks& blocks = {}) {
  return {AttentionFlags(attrs, 3), Type(DType::f32, {2, t, 4, 8}), Type(DType::f32, {2, s, 2, 8}), blocks};
}

TEST(AttentionCut, LengthsOfOneBlockAreWhole) {
  for (const std::int64_t length : {1, 5, 511, 512}) {
    const AttentionCut cut = cut_of(length, length, attrs_of(true, 0));
    EXPECT_EQ(cut.queries, length);
    EXPECT_EQ(cut.pairs(), 1);
  }
}

TEST(AttentionCut, LongerOnesAreCutIntoTilesThatFillUpLittle) {
  const std::pair<std::int64_t, std::int64_t> wanted[] = {
      {1024, 512}, {768, 384}, {640, 384}, {4096, 512}, {1152, 384}};
  for (const auto& [length, block] : wanted)
    EXPECT_EQ(cut_of(length, length, attrs_of(true, 0)).queries, block) << length;
  for (std::int64_t length = 513; length < 5000; length += 37) {
    const AttentionCut cut = cut_of(length, length, attrs_of(true, 0));
    EXPECT_EQ(cut.queries % 128, 0);
    EXPECT_LE(static_cast<double>(cut.query_blocks * cut.queries - length), 0.25 * static_cast<double>(length) + 127);
  }
}

// A block is processed if and only if, by shape, some query attends to some key of it; every row has at least one.
TEST(AttentionCut, BlocksThatShapeHidesAreNotMet) {
  for (const std::int64_t t : {5, 12, 17}) {
    for (const std::int64_t s : {4, 12, 23}) {
      for (const std::int64_t window : {0, 1, 3, 100}) {
        const AttentionCut cut = cut_of(t, s, attrs_of(true, window), {3, 1, 1000});
        for (std::int64_t i = 0; i < cut.query_blocks; ++i) {
          const auto sees = [&](std::int64_t block) {
            for (std::int64_t q = i * cut.queries; q < (i + 1) * cut.queries; ++q) {
              for (std::int64_t k = block * cut.keys; k < (block + 1) * cut.keys; ++k) {
                if (k <= q && (window == 0 || q - k < window)) return true;
              }
            }
            return false;
          };
          std::int64_t met = 0;
          for (std::int64_t block = 0; block < cut.key_blocks; ++block) {
            const bool meets = block >= cut.first(i) && block < cut.last(i);
            met += meets ? 1 : 0;
            EXPECT_TRUE(meets || !sees(block)) << t << " " << s << " " << window << ": " << i << ", " << block;
          }
          std::int64_t seen = 0;
          for (std::int64_t block = 0; block < cut.key_blocks; ++block) seen += sees(block) ? 1 : 0;
          EXPECT_EQ(met, std::max<std::int64_t>(seen, 1)) << t << " " << s << " " << window << ": " << i;
        }
      }
    }
  }
}

TEST(AttentionCut, OffsetsAreDataAndHideNothing) {
  const AttentionCut cut = cut_of(12, 12, attrs_of(true, 3, true), {3, 1, 1000});
  EXPECT_EQ(cut.pairs(), cut.query_blocks * cut.key_blocks);
}

TEST(AttentionCut, GroupsKeepTheirScoresWithinTheLimit) {
  for (const std::int64_t scores : {1, 30, 60, 1000}) {
    const AttentionCut cut = cut_of(12, 12, attrs_of(true, 0), {3, 1, scores});
    EXPECT_EQ(cut.groups() * cut.batch * cut.heads, cut.b * cut.n);
    const std::int64_t one = cut.r * cut.queries * cut.keys;
    EXPECT_LE(cut.batch * cut.heads * one, std::max(scores, one));
  }
}

// --- what is computed

// All cases in one compilation, which is the slow part.
void expect_reference(const Plugin& plugin, const std::vector<OpCase>& cases, const AttentionBlocks& blocks) {
  Graph graph("cases");
  std::vector<HostTensor> inputs, wanted;
  std::vector<const OpCase*> owners;
  for (const OpCase& call : cases) {
    std::vector<Value> values;
    for (HostTensor& operand : fill_operands(call)) {
      values.push_back(graph.input("x" + std::to_string(inputs.size()), type_of(operand)));
      inputs.push_back(std::move(operand));
    }
    const std::span operands(inputs.end() - static_cast<std::ptrdiff_t>(values.size()), inputs.end());
    for (HostTensor& result : run_reference(op_named(call.op), call.attrs, operands)) {
      wanted.push_back(std::move(result));
      owners.push_back(&call);
    }
    for (const Value result : graph.apply(call.op, values, call.attrs))
      graph.output("y" + std::to_string(graph.outputs().size()), result);
  }
  LowerOptions options;
  options.attention_blocks = blocks;
  const std::vector<HostTensor> got = run(plugin, lower(graph, options), inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(difference(got[i], wanted[i], tolerance_of(*owners[i], wanted[i].dtype(), DType::f32)), "")
        << owners[i]->describe() << " result " << i;
  }
}

// One case for each kind of block, with more keys than queries and with grouped queries; all 52 with SYSTOLE_TEST_LONG.
TEST(AttentionBlocks, TinyOnesAreTheReference) {
  NEEDS("cpu");
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  const std::pair<const char*, AttentionBlocks> kinds[] = {
      {"causal segments offsets window 3 bias grouped", {2, 1, 16}},
      {"causal window 2 grouped", {3, 1, 1000}},
      {"causal bias grouped", {4, 2, 1}}};
  for (const auto& [note, blocks] : kinds) {
    std::vector<OpCase> cases;
    for (OpCase& call : op_cases(DType::f32).good) {
      const bool attention = call.op == "attention" || call.op == "attention_grad";
      if (attention && call.operands[0].type.size(0) == 3 && (all || call.note == note))
        cases.push_back(std::move(call));
    }
    ASSERT_GE(cases.size(), 2U) << note;
    expect_reference(*it, cases, blocks);
  }
}

// Forward, and backward with the true o and lse, which the op's cases do not have.
std::vector<OpCase> long_cases(std::int64_t t, std::int64_t s, const Attrs& attrs, DType f) {
  const CaseOperand q = real(Type(f, {1, t, 2, 8})), k = real(Type(f, {1, s, 1, 8}));
  const CaseOperand lse = real(Type(DType::f32, {1, 2, t}), 5, 7);
  OpCase forward{.op = "attention", .operands = {q, k, k}, .attrs = attrs, .note = "long", .reduction = s};
  OpCase backward{.op = "attention_grad", .operands = {q, k, k, q, lse, q}, .attrs = attrs, .note = "long"};
  backward.reduction = 2 * (s + 2 * t);
  return {forward, backward};
}

TEST(AttentionBlocks, RealOnesAreTheReference) {
  NEEDS("cpu");
  expect_reference(*it, long_cases(650, 530, attrs_of(true, 0), DType::f32), {});
  if (std::getenv("SYSTOLE_TEST_LONG") == nullptr) return;
  expect_reference(*it, long_cases(1024, 1024, attrs_of(true, 200), DType::f32), {});
  expect_reference(*it, long_cases(530, 1100, attrs_of(false, 0), DType::f32), {});
}

// --- what is written

Graph step_of(std::int64_t t, std::int64_t s, const Attrs& attrs) {
  Graph graph("step");
  const Value q = graph.input("q", Type(DType::bf16, {4, t, 8, 64}));
  const Value k = graph.input("k", Type(DType::bf16, {4, s, 2, 64})), v = graph.input("v", k.type());
  const Value g = graph.input("g", q.type());
  const std::vector<Value> o = graph.apply("attention", std::vector{q, k, v}, attrs);
  for (const Value d : graph.apply("attention_grad", std::vector{q, k, v, o[0], o[1], g}, attrs))
    graph.output("d" + std::to_string(graph.outputs().size()), d);
  return graph;
}

// The largest number of elements of a value in the text.
std::int64_t largest(const std::string& text) {
  static const std::regex tensor("tensor<([0-9x]*)x[a-z]");
  std::int64_t most = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), tensor), end; at != end; ++at) {
    std::int64_t elements = 1, size = 0;
    for (const char c : (*at)[1].str() + "x") {
      if (c != 'x') {
        size = 10 * size + (c - '0');
      } else {
        elements *= size;
        size = 0;
      }
    }
    most = std::max(most, elements);
  }
  return most;
}

TEST(AttentionText, NoValueIsQueriesTimesKeys) {
  for (const std::int64_t t : {1000, 8192}) {
    for (const std::int64_t s : {777, 8192}) {
      const Graph graph = step_of(t, s, attrs_of(true, 0));
      const std::int64_t operand = 4 * 8 * 64 * (std::max(t, s) + 512);
      EXPECT_LE(largest(lower(graph).text), std::max(operand, AttentionBlocks().scores)) << t << " × " << s;
    }
  }
}

TEST(AttentionText, OneBlockHasNoLoop) {
  EXPECT_EQ(lower(step_of(256, 256, attrs_of(true, 0))).text.find("while"), std::string::npos);
  EXPECT_NE(lower(step_of(1024, 1024, attrs_of(true, 0))).text.find("while"), std::string::npos);
}

}  // namespace
}  // namespace systole::stablehlo
