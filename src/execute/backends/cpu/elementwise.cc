// Elementwise ops and fused chains of them: all by one kernel, chain.

#include "execute/backends/cpu/chain_program.h"

namespace systole::cpu {
namespace {

ChainProgram program_of(const NodeInfo& info) {
  return info.node.regions.empty() ? chain_of_node(info) : chain_of_region(info.node.regions[0]);
}

std::string refuses(const NodeInfo& info, Shared&) { return program_of(info).refusal; }

BoundKernel bind(const NodeInfo& info, const Places& places, Shared& shared) {
  ChainProgram program = program_of(info);
  CHECK(program.refusal.empty(), "{}", program.refusal);
  std::vector<void*> pointers;
  for (std::byte* p : places.operands) pointers.push_back(p);
  for (std::byte* p : places.results) pointers.push_back(p);
  return [kernel = shared.kernels.chain, steps = std::move(program.steps), pointers = std::move(pointers),
          n = program.n, threads = shared.threads] {
    return kernel({steps.data(), static_cast<std::int64_t>(steps.size()), pointers.data(), n, threads});
  };
}

constexpr KernelEntry entry(const char* op) { return {op, refuses, nullptr, bind, "chain"}; }

constexpr KernelEntry kEntries[] = {entry("fusion"),      entry("neg"),     entry("exp"),       entry("log"),
                                    entry("tanh"),        entry("sigmoid"), entry("gelu"),      entry("gelu_tanh"),
                                    entry("silu"),        entry("relu"),    entry("rsqrt"),     entry("sqrt"),
                                    entry("is_finite"),   entry("add"),     entry("sub"),       entry("mul"),
                                    entry("div"),         entry("max"),     entry("min"),       entry("compare"),
                                    entry("logical_and"), entry("select"),  entry("gelu_grad"), entry("gelu_tanh_grad"),
                                    entry("silu_grad"),   entry("cast"),    entry("constant"),  entry("iota")};

}  // namespace

std::span<const KernelEntry> elementwise_entries() { return kEntries; }

}  // namespace systole::cpu
