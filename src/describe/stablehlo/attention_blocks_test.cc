// Attention over many blocks: tiny blocks on every case of the op beside its reference, the real ones at one length, and
// what is promised of the text.

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "describe/graph/ops/cases/list.h"
#include "describe/graph/ops/ops.h"
#include "describe/stablehlo/attention_blocks.h"
#include "describe/stablehlo/module.h"
#include "ground/pjrt/client.h"
#include "ground/pjrt/testing/vendors_plugin.h"

namespace systole::stablehlo {
namespace {

using pjrt::plugin;
using pjrt::Plugin;

Graph graph_of(const OpCase& call) {
  Graph graph("one");
  std::vector<Value> operands;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    operands.push_back(graph.input("x" + std::to_string(i), call.operands[i].type));
  const std::vector<Value> results = graph.apply(call.op, operands, call.attrs);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return graph;
}

std::vector<HostTensor> run(const pjrt::Client& client, const Module& module, std::span<const HostTensor> inputs) {
  const Result<pjrt::LoadedExecutable> compiled = client.compile({.code = module.text}, {});
  if (!compiled.ok()) { ADD_FAILURE() << compiled.error().message << module.text; return {}; }
  const pjrt::LoadedExecutable program = *compiled;
  std::vector<pjrt::Buffer> buffers;
  for (const HostTensor& input : inputs)
    buffers.push_back(client.upload(input.bytes(), input.dtype(), input.shape(), 0).value());
  std::vector<const pjrt::Buffer*> arguments;
  for (const pjrt::Buffer& buffer : buffers) arguments.push_back(&buffer);
  const std::vector<pjrt::DeviceRun> runs = program.run({arguments}).value();
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < module.results.size(); ++i) {
    outputs.emplace_back(module.results[i].local.dtype, module.results[i].local.shape);
    if (outputs.back().size() == 0) continue;
    EXPECT_TRUE(runs[0].outputs[i].copy_to(outputs.back().bytes()).value().wait().ok());
  }
  return outputs;
}

void expect_reference(const pjrt::Client& client, const OpCase& call, const LowerOptions& options) {
  const std::vector<HostTensor> operands = fill_operands(call);
  const std::vector<HostTensor> want = run_reference(op_named(call.op), call.attrs, operands);
  const std::vector<HostTensor> got = run(client, lower(graph_of(call), options), operands);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t r = 0; r < want.size(); ++r)
    EXPECT_EQ(difference(got[r], want[r], tolerance_of(call, want[r].dtype(), DType::f32)), "")
        << call.describe() << " result " << r;
}

TEST(AttentionBlocks, cases_are_the_reference) {
  NEEDS("cpu");
  const pjrt::Client client = pjrt::Client::create(*it).value();
  for (const DType f : {DType::f32, DType::bf16}) {
  std::map<std::string, double> times;
  for (const OpCase& call : op_cases(f).good) {
    if (find_lowering(call.op) == nullptr) continue;
    SCOPED_TRACE(call.describe());
    static const char* only = getenv("ONLY");
    if (only && call.op.find(only) == std::string::npos) continue;
    std::fprintf(stderr, "%s %s\n", name_of(f), call.describe().c_str());
    expect_reference(client, call, {});
  }
  }
}

TEST(AttentionBlocks, tiny) {
  NEEDS("cpu");
  const pjrt::Client client = pjrt::Client::create(*it).value();
  for (const OpCase& call : op_cases(DType::f32).good) {
    if (call.op != "attention" && call.op != "attention_grad") continue;
    if (call.operands[0].type.size(0) > 3) continue;
    LowerOptions options;
    options.attention_blocks = {2, 1, 16};
    expect_reference(client, call, options);
  }
}

}  // namespace
}  // namespace systole::stablehlo
