// The verifier of the arena. A block is used in episodes: a value in one per schedule that uses it, a scratch in one
// per action of its function. Two blocks may share bytes if no two of their episodes can run at the same time. That
// follows from the happens-before order of the actions (order.h), not from the planner's times.

#include <algorithm>
#include <limits>
#include <vector>

#include "describe/program/arena.h"
#include "describe/program/order.h"
#include "describe/program/verify_parts.h"

namespace systole {
namespace {

using Clock = ActionOrder::Clock;

// A set of actions. `begins`: a lower bound on what has ended when any of them begins; `ends`: the clock after all.
struct Episode {
  Clock begins, ends;
  Episode() {
    begins.fill(std::numeric_limits<int>::max());
    ends.fill(0);
  }
  void add(const ActionOrder& order, int action) {
    for (std::size_t s = 0; s < begins.size(); ++s) begins[s] = std::min(begins[s], order.when_begins(action)[s]);
    int& end = ends[static_cast<std::size_t>(order.stream(action))];
    end = std::max(end, order.rank(action) + 1);
  }
  // True if all actions of this have ended when any of `other` begins.
  bool before(const Episode& other) const {
    for (std::size_t s = 0; s < ends.size(); ++s)
      if (ends[s] > other.begins[s]) return false;
    return true;
  }
};

// A block's episodes in one schedule: one per action of one stream, in its order; or a single one.
struct Episodes {
  int schedule;        // -1: live always
  bool whole = false;  // live during the whole schedule: the host writes before it or reads after it
  int stream = -1;     // of a scratch
  std::vector<Episode> list;

  bool meets(const Episodes& other) const {
    if (schedule < 0 || other.schedule < 0) return true;
    if (schedule != other.schedule) return false;
    if (whole || other.whole) return true;
    if (list.size() > other.list.size()) return other.meets(*this);
    // Episodes that end before x begins come first in `other`, those that begin after its end last. None may remain.
    return std::ranges::any_of(list, [&](const Episode& x) {
      const auto y = std::ranges::partition_point(other.list, [&](const Episode& e) { return e.before(x); });
      return y != other.list.end() && !x.before(*y);
    });
  }
};

struct ArenaBlock {
  std::string name;
  std::int64_t from, to;
  std::vector<Episodes> episodes;

  Episodes& episodes_of(int schedule, int stream) {
    for (Episodes& e : episodes)
      if (e.schedule == schedule && e.stream == stream) return e;
    return episodes.emplace_back(Episodes{schedule, false, stream, {}});
  }
};

class ArenaChecker {
 public:
  explicit ArenaChecker(const Program& program) : program_(program) {}

  void run() {
    for (const ProgramValue& value : program_.values) add_value(value);
    for (const Function& function : program_.functions) add_scratch(function);
    for (int s = 0; s < static_cast<int>(program_.schedules.size()); ++s) add_episodes(s);
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
  void add_value(const ProgramValue& value) {
    if (value.stride < value.type.bytes().count())
      refuse("'{}' has a slot every {} bytes, of {} bytes", value.name, value.stride, value.type.bytes().count());
    ArenaBlock block{value.name, value.offset, value.offset + value.extent().count(), {}};
    if (outlives_schedules(value.residence)) block.episodes.push_back({-1, true, -1, {}});
    blocks_.push_back(std::move(block));
  }

  void add_scratch(const Function& function) {
    blocks_.push_back({"scratch of " + function.name,
                       function.scratch_offset,
                       function.scratch_offset + function.scratch.count(),
                       {}});
  }

  void add_episodes(int schedule) {
    const Schedule& of = program_.schedules[static_cast<std::size_t>(schedule)];
    const ActionOrder order(of);
    for (int a = 0; a < static_cast<int>(of.actions.size()); ++a) {
      const int f = of.actions[static_cast<std::size_t>(a)].function;
      const Function& function = program_.functions[static_cast<std::size_t>(f)];
      for (const std::vector<Port>* ports : {&function.inputs, &function.outputs})
        for (const Port& port : *ports) use(port.value, schedule, order, a);
      ArenaBlock& scratch = blocks_[program_.values.size() + static_cast<std::size_t>(f)];
      scratch.episodes_of(schedule, order.stream(a)).list.emplace_back().add(order, a);
    }
  }

  void use(int v, int schedule, const ActionOrder& order, int action) {
    const Residence residence = program_.values[static_cast<std::size_t>(v)].residence;
    if (outlives_schedules(residence)) return;
    Episodes& episodes = blocks_[static_cast<std::size_t>(v)].episodes_of(schedule, -1);
    episodes.whole = residence == Residence::input || residence == Residence::output;
    episodes.list.resize(1);
    episodes.list[0].add(order, action);
  }

  static bool meet(const ArenaBlock& a, const ArenaBlock& b) {
    return std::ranges::any_of(a.episodes, [&](const Episodes& x) {
      return std::ranges::any_of(b.episodes, [&](const Episodes& y) { return x.meets(y); });
    });
  }

  const Program& program_;
  std::vector<ArenaBlock> blocks_;  // values, then scratches
};

}  // namespace

void verify_arena(const Program& program) { ArenaChecker(program).run(); }

}  // namespace systole
