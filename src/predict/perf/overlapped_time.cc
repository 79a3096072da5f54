#include "predict/perf/overlapped_time.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "describe/ir/rewrite.h"
#include "describe/program/collective_call.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

bool overlaps(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const GraphNode& node) {
    return (is_collective(node) && overlap_of(node) != Overlap::none) ||
           (is(node, "repeat") && overlaps(node.regions[0]));
  });
}

class Clocks {
 public:
  Clocks(const MachineSpeed& speed, std::map<const GraphNode*, Seconds> kernels)
      : speed_(speed), kernels_(std::move(kernels)) {}

  Seconds run(const Graph& graph) {
    play(graph, {});
    return std::max(compute_, links_);
  }

 private:
  using Ends = std::map<const GraphNode*, Seconds>;  // of nodes that began one iteration ahead

  // `ahead`: nodes that began ahead for this iteration.
  void play(const Graph& graph, const Ends& ahead) {
    std::vector<std::pair<int, Seconds>> awaited;  // the node that waits, and until when
    for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
      const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
      const Overlap overlap = overlap_of(node);
      if (overlap == Overlap::ahead) {
        if (const auto end = ahead.find(&node); end != ahead.end())
          awaited.emplace_back(first_reader(graph, n), end->second);
        continue;
      }
      for (const auto& [reader, end] : awaited) {
        if (reader == n) compute_ = std::max(compute_, end);
      }
      if (is(node, "repeat")) {
        repeat(node);
      } else if (is_collective(node)) {
        begin(graph, node);
        if (overlap == Overlap::reader) {
          awaited.emplace_back(first_reader(graph, n), links_);
        } else {
          compute_ = std::max(compute_, links_);
        }
      } else {
        kernel(node);
      }
    }
  }

  // Plays three iterations and the last; all others take as long as the third.
  void repeat(const GraphNode& node) {
    const Graph& body = node.regions[0];
    const std::int64_t count = node.attrs.get_int("count");
    Ends next = go_ahead(body);
    for (std::int64_t i = 0; i < count; ++i) {
      const Seconds compute = compute_, links = links_;
      const Ends now = std::exchange(next, i + 1 < count ? go_ahead(body) : Ends{});
      play(body, now);
      if (i != 2 || count < 5) continue;
      const auto more = static_cast<double>(count - 4);
      const Seconds passed = (compute_ - compute) * more, of_links = (std::max(links_, links) - links) * more;
      compute_ += passed;
      links_ += of_links;
      for (auto& [each, end] : next) end += passed;
      i = count - 2;
    }
  }

  Ends go_ahead(const Graph& body) {
    Ends ends;
    for (const GraphNode& node : body.nodes()) {
      if (overlap_of(node) != Overlap::ahead) continue;
      if (is_collective(node)) {
        begin(body, node);
        ends[&node] = links_;
      } else {
        kernel(node);
      }
    }
    return ends;
  }

  void kernel(const GraphNode& node) {
    const auto time = kernels_.find(&node);
    if (time != kernels_.end()) compute_ += time->second;
  }

  void begin(const Graph& graph, const GraphNode& node) {
    const CollectiveTime time = collective_time(graph, node, speed_);
    if (speed_.cores_move_bytes) compute_ += time.total - time.latency;
    links_ = std::max(links_, compute_) + (speed_.cores_move_bytes ? time.latency : time.total);
  }

  const MachineSpeed& speed_;
  const std::map<const GraphNode*, Seconds> kernels_;
  Seconds compute_, links_;
};

}  // namespace

std::optional<Seconds> overlapped_time(const Graph& graph, const MachineSpeed& speed, Bytes ago) {
  if (!overlaps(graph)) return std::nullopt;
  std::map<const GraphNode*, Seconds> kernels;
  each_kernel(graph, speed, ago, [&](const GraphNode& node, Seconds time, double) { kernels[&node] = time; });
  return Clocks(speed, std::move(kernels)).run(graph);
}

}  // namespace systole
