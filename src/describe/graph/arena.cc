#include "describe/graph/arena.h"

#include <algorithm>

#include "describe/graph/memory.h"

namespace systole {
namespace {

bool uses(const std::vector<Port>& ports, int value) {
  return std::any_of(ports.begin(), ports.end(), [&](const Port& port) { return port.value == value; });
}

bool lives_always(Residence r) {
  return r == Residence::parameter || r == Residence::state || r == Residence::staging || r == Residence::cache;
}

bool has_one_stream(const Schedule& schedule) {
  return std::all_of(schedule.actions.begin(), schedule.actions.end(),
                     [&](const Action& action) { return action.stream == schedule.actions.front().stream; });
}

}  // namespace

ActionTimeline::ActionTimeline(const Program& program) : program_(program) {
  for (const Schedule& schedule : program.schedules) {
    base_.push_back(end_);
    end_ += static_cast<int>(schedule.actions.size());
  }
}

std::vector<std::pair<int, int>> ActionTimeline::value_lives(int value) const {
  const Residence residence = program_.values[static_cast<std::size_t>(value)].residence;
  if (lives_always(residence)) return {{0, std::max(end_ - 1, 0)}};
  std::vector<std::pair<int, int>> lives;
  for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
    const Schedule& schedule = program_.schedules[s];
    int first = -1, last = -1;
    for (int a = 0; a < static_cast<int>(schedule.actions.size()); ++a) {
      const Function& function =
          program_.functions[static_cast<std::size_t>(schedule.actions[static_cast<std::size_t>(a)].function)];
      if (!uses(function.inputs, value) && !uses(function.outputs, value)) continue;
      if (first < 0) first = a;
      last = a;
    }
    if (first < 0) continue;
    const bool whole = residence == Residence::input || residence == Residence::output || !has_one_stream(schedule);
    lives.emplace_back(base_[s] + (whole ? 0 : first),
                       base_[s] + (whole ? static_cast<int>(schedule.actions.size()) - 1 : last));
  }
  return lives;
}

std::vector<std::pair<int, int>> ActionTimeline::scratch_lives(int function) const {
  std::vector<std::pair<int, int>> lives;
  for (std::size_t s = 0; s < program_.schedules.size(); ++s) {
    const Schedule& schedule = program_.schedules[s];
    const bool one_stream = has_one_stream(schedule);
    for (int a = 0; a < static_cast<int>(schedule.actions.size()); ++a) {
      if (schedule.actions[static_cast<std::size_t>(a)].function != function) continue;
      const int last = static_cast<int>(schedule.actions.size()) - 1;
      lives.emplace_back(base_[s] + (one_stream ? a : 0), base_[s] + (one_stream ? a : last));
    }
  }
  return lives;
}

void plan_arena(Program& program) {
  const ActionTimeline timeline(program);
  const std::int64_t alignment = program.target.alignment;
  std::vector<Block> blocks;
  for (int v = 0; v < static_cast<int>(program.values.size()); ++v) {
    ProgramValue& value = program.values[static_cast<std::size_t>(v)];
    value.stride = aligned(value.type.bytes().count(), alignment);
    blocks.push_back({Bytes(value.stride * value.slots), timeline.value_lives(v)});
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
