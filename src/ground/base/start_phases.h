#pragma once
// Where the time of a start goes: phases that follow one another without a gap. The clock is read once where one ends
// and the next begins, and the total is the sum of the phases.

#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"

namespace systole {

class StartPhases {
 public:
  // Borrows the clock. `before`: what has passed already; it belongs to the first phase.
  StartPhases(Clock& clock, Seconds before) : clock_(clock), last_(clock.now() - before) {}

  // What has passed since the phase before is this one's. REQUIRES: a new name.
  void end(std::string name) {
    const Seconds now = clock_.now();
    phases_.emplace_back(std::move(name), now - last_);
    last_ = now;
  }

  // {"process_s": 0.01, "read_s": 0.5, "total_s": 0.51}: in their order, then the sum.
  Node node() const {
    Node node = Node::map();
    Seconds total{};
    for (const auto& [name, seconds] : phases_) {
      node.set(name + "_s", seconds.count());
      total += seconds;
    }
    return node.set("total_s", total.count());
  }

 private:
  Clock& clock_;
  Seconds last_;
  std::vector<std::pair<std::string, Seconds>> phases_;
};

}  // namespace systole
