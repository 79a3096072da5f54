#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include "describe/ir/verify.h"
#include "describe/passes/passes.h"

namespace systole {

namespace {

// Runs and verifies pass by pass to find the one that broke the graph. Verifying takes as long as a pass, so this is
// done only after the final graph failed.
void fail_by_pass(const Graph& original, std::span<const Pass> passes,
                  const std::function<bool(const Pass&)>& is_skipped) {
  Graph graph = original;
  for (const Pass& pass : passes) {
    if (is_skipped(pass)) continue;
    graph = pass.run(graph);
    try {
      verify(graph);
    } catch (const Failure& f) {
      Error e = f.error();
      e.message = fmt::format("after the pass '{}': {}", pass.name, e.message);
      fail(std::move(e));
    }
  }
}

}  // namespace

Graph run_passes(Graph original, std::span<const Pass> passes, std::span<const std::string> skip,
                 std::vector<PassRecord>* records) {
  const auto is_skipped = [&](const Pass& pass) {
    return std::find(skip.begin(), skip.end(), pass.name) != skip.end();
  };
  std::optional<Graph> result;  // nothing: still the original
  try {
    for (const Pass& pass : passes) {
      const Graph& before = result ? *result : original;
      PassRecord record{pass.name, Seconds(0), count_nodes(before), 0, is_skipped(pass)};
      if (!record.skipped) {
        const auto start = std::chrono::steady_clock::now();
        result = pass.run(before);
        record.time = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      record.nodes_after = count_nodes(result ? *result : original);
      if (records != nullptr) records->push_back(std::move(record));
    }
    verify(result ? *result : original);
  } catch (const Failure&) {
    fail_by_pass(original, passes, is_skipped);
    throw;
  }
  return result ? std::move(*result) : std::move(original);
}

}  // namespace systole
