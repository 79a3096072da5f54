#include "describe/program/arena.h"

#include <algorithm>

#include "describe/program/memory.h"
#include "describe/program/order.h"

namespace systole {
namespace {

// Lifetimes of blocks over all schedules: schedule s has the times [base, base + actions). A block lives from the place
// of the action that uses it until all later actions of the list are ordered after that action.
class ActionTimeline {
 public:
  explicit ActionTimeline(const Program& program) : program_(program) {
    for (const Schedule& schedule : program.schedules) {
      orders_.emplace_back(schedule);
      base_.push_back(end_);
      end_ += static_cast<int>(schedule.actions.size());
      used_.push_back(used_in(schedule, orders_.back()));
    }
  }

  std::vector<std::pair<int, int>> value_lives(int value) const {
    const Residence residence = program_.values[static_cast<std::size_t>(value)].residence;
    if (outlives_schedules(residence)) return {{0, std::max(end_ - 1, 0)}};
    const bool whole = residence == Residence::input || residence == Residence::output;
    std::vector<std::pair<int, int>> lives;
    for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
      auto [first, last] = used_[s][static_cast<std::size_t>(value)];
      if (first < 0) continue;
      if (whole) first = 0, last = static_cast<int>(program_.schedules[s].actions.size()) - 1;
      lives.emplace_back(base_[s] + first, base_[s] + last);
    }
    return lives;
  }

  std::vector<std::pair<int, int>> scratch_lives(int function) const {
    std::vector<std::pair<int, int>> lives;
    for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
      const std::vector<Action>& actions = program_.schedules[s].actions;
      for (int a = 0; a < static_cast<int>(actions.size()); ++a) {
        if (actions[static_cast<std::size_t>(a)].function == function)
          lives.emplace_back(base_[s] + a, base_[s] + orders_[s].release(a) - 1);
      }
    }
    return lives;
  }

 private:
  // Per value: its first and last time in the schedule; -1 if no action uses it.
  using Used = std::vector<std::pair<int, int>>;
  Used used_in(const Schedule& schedule, const ActionOrder& order) const {
    Used used(program_.values.size(), {-1, -1});
    for (int a = 0; a < static_cast<int>(schedule.actions.size()); ++a) {
      const Action& action = schedule.actions[static_cast<std::size_t>(a)];
      const Function& function = program_.functions[static_cast<std::size_t>(action.function)];
      for (const std::vector<Port>* ports : {&function.inputs, &function.outputs}) {
        for (const Port& port : *ports) {
          auto& [first, last] = used[static_cast<std::size_t>(port.value)];
          if (first < 0) first = a;
          last = std::max(last, order.release(a) - 1);
        }
      }
    }
    return used;
  }

  const Program& program_;
  std::vector<ActionOrder> orders_;
  std::vector<int> base_;
  std::vector<Used> used_;  // per schedule
  int end_ = 0;
};

}  // namespace

bool outlives_schedules(Residence r) {
  return r == Residence::parameter || r == Residence::state || r == Residence::staging || r == Residence::cache;
}

void plan_arena(Program& program) {
  const ActionTimeline timeline(program);
  const std::int64_t alignment = program.target.alignment;
  std::vector<Block> blocks;
  for (int v = 0; v < static_cast<int>(program.values.size()); ++v) {
    ProgramValue& value = program.values[static_cast<std::size_t>(v)];
    value.stride = aligned(value.type.bytes().count(), alignment);
    blocks.push_back({value.extent(), timeline.value_lives(v)});
  }
  for (int f = 0; f < static_cast<int>(program.functions.size()); ++f) {
    blocks.push_back({program.functions[static_cast<std::size_t>(f)].scratch, timeline.scratch_lives(f)});
  }
  program.arena = place_blocks(blocks, alignment);
  std::size_t b = 0;
  for (ProgramValue& value : program.values) value.offset = blocks[b++].offset;
  for (Function& function : program.functions) function.scratch_offset = blocks[b++].offset;
}

}  // namespace systole
