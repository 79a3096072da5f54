// The verifier of the arena. A block is used in episodes: a value in one for each schedule that touches it, a scratch
// in one for each action of its function. Two blocks may share bytes if in every schedule the episodes of one end
// before those of the other begin; that is asked of the order of actions itself, not of the planner's times.

#include <algorithm>
#include <vector>

#include "describe/graph/arena.h"
#include "describe/graph/order.h"
#include "describe/graph/verify_parts.h"

namespace systole {
namespace {

struct Episode {
  int schedule;              // -1: always
  bool whole = false;        // all of the schedule: the host writes before it or reads after it
  std::vector<int> actions;  // that use the block
};

struct ArenaBlock {
  std::string name;
  std::int64_t from, to;
  std::vector<Episode> episodes;
};

bool touches(const Function& function, int value) {
  const auto is_it = [&](const Port& port) { return port.value == value; };
  return std::any_of(function.inputs.begin(), function.inputs.end(), is_it) ||
         std::any_of(function.outputs.begin(), function.outputs.end(), is_it);
}

class ArenaChecker {
 public:
  explicit ArenaChecker(const Program& program) : program_(program) {
    for (const Schedule& schedule : program.schedules) orders_.emplace_back(schedule);
  }

  void run() {
    for (int v = 0; v < static_cast<int>(program_.values.size()); ++v) add_value(v);
    for (int f = 0; f < static_cast<int>(program_.functions.size()); ++f) add_scratch(f);
    for (std::size_t a = 0; a < blocks_.size(); ++a) {
      if (blocks_[a].from < 0 || blocks_[a].from % program_.target.alignment != 0)
        refuse("'{}' lies at {}, alignment {}", blocks_[a].name, blocks_[a].from, program_.target.alignment);
      if (blocks_[a].to > program_.arena.count()) refuse("'{}' ends after the arena", blocks_[a].name);
      for (std::size_t b = 0; b < a; ++b) {
        if (blocks_[a].from < blocks_[b].to && blocks_[b].from < blocks_[a].to && meet(blocks_[a], blocks_[b]))
          refuse("'{}' and '{}' overlap in the arena", blocks_[a].name, blocks_[b].name);
      }
    }
  }

 private:
  void add_value(int v) {
    const ProgramValue& value = program_.values[static_cast<std::size_t>(v)];
    if (value.stride < value.type.bytes().count())
      refuse("'{}' has a slot every {} bytes, of {} bytes", value.name, value.stride, value.type.bytes().count());
    ArenaBlock block{value.name, value.offset, value.offset + value.stride * value.slots, {}};
    if (outlives_schedules(value.residence)) {
      block.episodes.push_back({-1, true, {}});
    } else {
      add_episodes(block, v, value.residence == Residence::input || value.residence == Residence::output);
    }
    blocks_.push_back(std::move(block));
  }

  void add_episodes(ArenaBlock& block, int v, bool whole) const {
    for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
      Episode episode{static_cast<int>(s), whole, {}};
      const std::vector<Action>& actions = program_.schedules[s].actions;
      for (std::size_t a = 0; a < actions.size(); ++a) {
        if (touches(program_.functions[static_cast<std::size_t>(actions[a].function)], v))
          episode.actions.push_back(static_cast<int>(a));
      }
      if (!episode.actions.empty()) block.episodes.push_back(std::move(episode));
    }
  }

  void add_scratch(int f) {
    const Function& function = program_.functions[static_cast<std::size_t>(f)];
    ArenaBlock block{
        "scratch of " + function.name, function.scratch_offset, function.scratch_offset + function.scratch.count(), {}};
    for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
      const std::vector<Action>& actions = program_.schedules[s].actions;
      for (std::size_t a = 0; a < actions.size(); ++a) {
        if (actions[a].function == f) block.episodes.push_back({static_cast<int>(s), false, {static_cast<int>(a)}});
      }
    }
    blocks_.push_back(std::move(block));
  }

  bool all_before(const Episode& a, const Episode& b) const {
    const ActionOrder& order = orders_[static_cast<std::size_t>(a.schedule)];
    for (const int x : a.actions) {
      for (const int y : b.actions) {
        if (!order.before(x, y)) return false;
      }
    }
    return true;
  }

  bool meet(const ArenaBlock& a, const ArenaBlock& b) const {
    for (const Episode& x : a.episodes) {
      for (const Episode& y : b.episodes) {
        if (x.schedule < 0 || y.schedule < 0) return true;
        if (x.schedule == y.schedule && (x.whole || y.whole || (!all_before(x, y) && !all_before(y, x)))) return true;
      }
    }
    return false;
  }

  const Program& program_;
  std::vector<ActionOrder> orders_;
  std::vector<ArenaBlock> blocks_;
};

}  // namespace

void verify_arena(const Program& program) { ArenaChecker(program).run(); }

}  // namespace systole
