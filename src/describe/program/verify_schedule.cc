// The verifier of schedules: one pass over the actions, in the order of the list. Each slot of each value records its
// last reader and writer per stream, which finds data races without comparing all pairs, and its content: nothing, the
// host's data, the result of a microbatch, or donated.

#include <algorithm>
#include <array>
#include <vector>

#include "describe/program/arena.h"
#include "describe/program/order.h"
#include "describe/program/verify_parts.h"

namespace systole {
namespace {

struct SlotState {
  enum class Content { nothing, host, written, donated } content = Content::nothing;
  int by = -1;                               // the action that wrote or donated it
  int microbatch = -1;                       // whose result it holds; -1: not of one microbatch
  std::array<int, kNumStreams> read, write;  // the last action on each stream; -1: none
  SlotState() {
    read.fill(-1);
    write.fill(-1);
  }
};

class ScheduleChecker {
 public:
  ScheduleChecker(const Program& program, const Schedule& schedule) : program_(program), schedule_(schedule) {}

  void run() {
    check_actions();
    const ActionOrder order(schedule_);
    order_ = &order;
    prepare();
    for (int a = 0; a < static_cast<int>(schedule_.actions.size()); ++a) play(a);
    check_end();
  }

 private:
  const Action& action(int a) const { return schedule_.actions[static_cast<std::size_t>(a)]; }
  const Function& function(int a) const { return program_.functions[static_cast<std::size_t>(action(a).function)]; }
  const ProgramValue& value(const Port& port) const { return program_.values[static_cast<std::size_t>(port.value)]; }
  std::string label(int a) const {
    return fmt::format("schedule {}, action {} ({} mb {})", schedule_.name, a, function(a).name, action(a).microbatch);
  }
  int slot(int a, const Port& port) const { return slot_of(program_, port, action(a)); }
  SlotState& state(int a, const Port& port) {
    return slots_[static_cast<std::size_t>(port.value)][static_cast<std::size_t>(slot(a, port))];
  }

  void check_actions() const {
    for (std::size_t a = 0; a < schedule_.actions.size(); ++a) {
      const Action& action = schedule_.actions[a];
      if (action.function < 0 || action.function >= static_cast<int>(program_.functions.size()))
        refuse("schedule {}, action {}: there is no function {}", schedule_.name, a, action.function);
      if (action.microbatch < 0 || action.chunk < 0)
        refuse("schedule {}, action {}: microbatch {}, chunk {}", schedule_.name, a, action.microbatch, action.chunk);
      const Function& f = program_.functions[static_cast<std::size_t>(action.function)];
      for (const std::vector<Port>* ports : {&f.inputs, &f.outputs}) {
        for (const Port& port : *ports) {
          if (slot_of(program_, port, action) < 0) {
            refuse("schedule {}, action {} ({}): there is no slot {} of '{}', which has {}", schedule_.name, a, f.name,
                   port.slot + (port.by_slot ? action.slot : 0), value(port).name, value(port).slots);
          }
        }
      }
    }
  }

  void prepare() {
    for (const ProgramValue& value : program_.values) {
      std::vector<SlotState> slots(static_cast<std::size_t>(value.slots));
      for (std::size_t s = 0; s < slots.size(); ++s) {
        if (value.residence == Residence::input) {
          slots[s].content = SlotState::Content::host;
          slots[s].microbatch = static_cast<int>(s);
        } else if (outlives_schedules(value.residence)) {
          slots[s].content = SlotState::Content::host;
        }
      }
      slots_.push_back(std::move(slots));
    }
  }

  // The latest action of a stream stands for all earlier ones.
  void order_after(int a, const std::array<int, kNumStreams>& others, const Port& port) const {
    for (const int other : others) {
      if (other < 0 || other == a || order_->before(other, a)) continue;
      refuse("{} and {} use '{}' (one of them writes it) and neither waits for the other", label(other), label(a),
             value(port).name);
    }
  }

  void read(int a, const Port& port) {
    SlotState& s = state(a, port);
    order_after(a, s.write, port);
    s.read[static_cast<std::size_t>(action(a).stream)] = a;
    const auto what = [&] { return fmt::format("{} reads '{}' slot {}", label(a), value(port).name, slot(a, port)); };
    if (s.content == SlotState::Content::nothing) refuse("{}, which nothing has written", what());
    if (s.content == SlotState::Content::donated) refuse("{}, which action {} was given for good", what(), s.by);
    if (port.by_microbatch && s.microbatch >= 0 && s.microbatch != action(a).microbatch) {
      refuse("{}, which holds microbatch {}: '{}' has {} slots, too few for the microbatches in flight", what(),
             s.microbatch, value(port).name, value(port).slots);
    }
  }

  void write(int a, const Port& port, bool donated) {
    SlotState& s = state(a, port);
    order_after(a, s.write, port);
    order_after(a, s.read, port);
    const int microbatch = port.by_microbatch ? action(a).microbatch : -1;
    if (!donated && value(port).residence == Residence::output && s.content == SlotState::Content::written &&
        s.microbatch != microbatch) {
      refuse("{} writes '{}' slot {} over what action {} gave, before the host has read it", label(a), value(port).name,
             slot(a, port), s.by);
    }
    s.write[static_cast<std::size_t>(action(a).stream)] = a;
    s.content = donated ? SlotState::Content::donated : SlotState::Content::written;
    s.by = a;
    s.microbatch = microbatch;
  }

  void play(int a) {
    const Function& f = function(a);
    for (const Port& port : f.inputs) read(a, port);
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      if (f.donated[i]) write(a, f.inputs[i], true);
    }
    for (const Port& port : f.outputs) write(a, port, false);
  }

  // Outputs and values that outlive the schedule must not end up donated: the host and other schedules read them.
  void check_end() const {
    for (std::size_t v = 0; v < slots_.size(); ++v) {
      const ProgramValue& value = program_.values[v];
      if (!outlives_schedules(value.residence) && value.residence != Residence::output) continue;
      for (const SlotState& s : slots_[v]) {
        if (s.content == SlotState::Content::donated) {
          refuse("{} is given '{}' for good, which is read after the schedule, and nothing writes it again",
                 label(s.by), value.name);
        }
      }
    }
  }

  const Program& program_;
  const Schedule& schedule_;
  const ActionOrder* order_ = nullptr;
  std::vector<std::vector<SlotState>> slots_;  // per value and slot
};

}  // namespace

void verify_schedule(const Program& program, const Schedule& schedule) { ScheduleChecker(program, schedule).run(); }

}  // namespace systole
