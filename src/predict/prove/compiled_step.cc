#include "predict/prove/compiled_step.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "predict/prove/instruction_facts.h"

namespace systole::prove {
namespace {

using pjrt::HloComputation;
using pjrt::HloInstruction;

constexpr Bytes kScalars{64};  // loop counters and comparisons stay near the cores

StepTime& add(StepTime& sum, const StepTime& other, double times) {
  sum.compute += other.compute * times;
  sum.kernels += other.kernels * times;
  sum.collectives += other.collectives * times;
  sum.exposed += other.exposed * times;
  sum.copies += other.copies * times;
  return sum;
}

// A number of the cost that a kernel states in its JSON, as "flops":"123"; nothing: not stated.
std::optional<double> stated(const std::string& config, std::string_view key) {
  const std::size_t at = config.find(fmt::format("\"{}\":", key));
  if (at == std::string::npos) return std::nullopt;
  std::size_t from = at + key.size() + 3;
  while (from < config.size() && (config[from] == ' ' || config[from] == '"')) ++from;
  double number = 0;
  const auto [end, failed] = std::from_chars(config.data() + from, config.data() + config.size(), number);
  if (failed != std::errc() || number < 0) return std::nullopt;
  return number;
}

// One run of a computation, in order.
class Timeline {
 public:
  Seconds now{}, network{}, copying{};  // busy until: the cores, the network, the copies
  StepTime spent;

  void compute(Seconds time) { now += time, spent.compute += time; }
  void kernel(Seconds time) { now += time, spent.kernels += time; }

  Seconds begin_collective(Seconds time) {
    spent.collectives += time;
    return network = std::max(now, network) + time;
  }
  Seconds begin_copy(Seconds time) { return copying = std::max(now, copying) + time; }
  void wait_for_collective(Seconds end) { wait(end, spent.exposed); }
  void wait_for_copy(Seconds end) { wait(end, spent.copies); }

  // Runs another computation as a whole; nothing that began here overlaps with it.
  void run(const StepTime& other, double times) {
    add(spent, other, times);
    now += other.total() * times;
  }

 private:
  void wait(Seconds end, Seconds& waited) {
    if (end <= now) return;
    waited += end - now;
    now = end;
  }
};

class Player {
 public:
  Player(const pjrt::HloModule& module, const Slice& slice) : lookup_(module), slice_(slice) {}

  StepTime play(std::int64_t id, int depth) {
    if (depth > kDeepestCall) return {};
    const auto [known, is_new] = played_.try_emplace(id);  // nothing for one that calls itself
    if (!is_new) return known->second;
    const HloComputation& computation = lookup_.computation(id);
    Ends ends;
    Timeline line;
    const auto order = lookup_.module().schedule.find(id);
    if (order != lookup_.module().schedule.end() && !order->second.empty()) {
      for (const std::int64_t next : order->second)
        if (const HloInstruction* instruction = lookup_.instruction(next)) see(*instruction, line, ends, depth);
    } else {
      for (const HloInstruction& instruction : computation.instructions) see(instruction, line, ends, depth);
    }
    return played_[id] = line.spent;
  }

 private:
  struct Under {
    Seconds end{};
    bool collective = false;
  };
  // Asynchronous operations under way, by the instruction that their end refers to. Of collectives split over fusions
  // the oldest ends first.
  struct Ends {
    std::map<std::int64_t, Under> by_id;
    std::deque<Seconds> fused;
  };

  void see(const HloInstruction& instruction, Timeline& line, Ends& ends, int depth) {
    if (instruction.opcode == "while") {
      for (const std::int64_t called : instruction.called) line.run(play(called, depth + 1), trips_of(instruction));
    } else if (instruction.opcode == "conditional") {
      StepTime costliest;
      for (const std::int64_t branch : instruction.called) {
        const StepTime time = play(branch, depth + 1);
        if (time.total() > costliest.total()) costliest = time;
      }
      line.run(costliest, 1);
    } else if (instruction.opcode == "call") {
      for (const std::int64_t called : instruction.called) line.run(play(called, depth + 1), 1);
    } else if (instruction.opcode.ends_with("-done") || instruction.opcode.ends_with("-update")) {
      end(instruction, line, ends);
    } else {
      begin(instruction, line, ends, depth);
    }
  }

  void end(const HloInstruction& instruction, Timeline& line, Ends& ends) {
    if (instruction.operands.empty()) return;
    const auto under = ends.by_id.find(instruction.operands.front());
    if (under == ends.by_id.end()) return;
    if (instruction.opcode.ends_with("-update")) {
      ends.by_id[instruction.id] = under->second;
      return;
    }
    under->second.collective ? line.wait_for_collective(under->second.end) : line.wait_for_copy(under->second.end);
  }

  void begin(const HloInstruction& instruction, Timeline& line, Ends& ends, int depth) {
    const bool asynchronous = instruction.opcode.ends_with("-start");
    if (const std::string kind = collective_kind(instruction.opcode); !kind.empty()) {
      const Seconds until = line.begin_collective(time_of(kind, instruction));
      asynchronous ? void(ends.by_id[instruction.id] = {until, true}) : line.wait_for_collective(until);
      return;
    }
    bool holds_collective = false;
    if (instruction.opcode == "fusion" || instruction.opcode == "async-start") {
      for (const std::int64_t called : instruction.called)
        holds_collective |= collectives_in(called, instruction, asynchronous, line, ends, depth + 1);
    }
    if (const double cycles = estimated_cycles(instruction); cycles > 0) {
      line.compute(Seconds(cycles / slice_.cycles_per_second));
      return;
    }
    if (is_free(instruction) || holds_collective) return;
    if (instruction.opcode == "custom-call") return line.kernel(time_of_kernel(instruction));
    const Bytes moved = moved_by(instruction);
    if (moved <= kScalars) return;
    const Seconds until = line.begin_copy(moved / slice_.bandwidth);
    asynchronous ? void(ends.by_id[instruction.id] = {until, false}) : line.wait_for_copy(until);
  }

  // Instructions without cycles move bytes, between memories or within one.
  Bytes moved_by(const HloInstruction& instruction) const {
    const std::vector<pjrt::HloShape>& parts = instruction.shape.parts;
    if (instruction.opcode == "async-start")
      return parts.size() > 1 ? parts[1].bytes() : Bytes();  // the part after the inputs
    if (instruction.opcode.ends_with("-start")) return parts.empty() ? instruction.shape.bytes() : parts[0].bytes();
    if (instruction.opcode == "dynamic-update-slice") {
      const HloInstruction* update = lookup_.operand(instruction, 1);
      return update == nullptr ? Bytes() : update->shape.bytes() * 2;
    }
    return instruction.shape.bytes() * 2;
  }

  // Handles collectives inside a fusion or an asynchronous call; true if there are any.
  bool collectives_in(std::int64_t id, const HloInstruction& around, bool asynchronous, Timeline& line, Ends& ends,
                      int depth) {
    if (depth > kDeepestCall || ++visits_ > kMostVisits) return false;
    const HloComputation& computation = lookup_.computation(id);
    bool found = false;
    const CollectivePart part = part_in(computation);
    for (const HloInstruction& inner : computation.instructions) {
      for (const std::int64_t called : inner.called) {
        if (inner.opcode == "fusion" || inner.opcode == "call" || inner.opcode == "async-start")
          found |= collectives_in(called, around, asynchronous, line, ends, depth + 1);
      }
      const std::string kind = collective_kind(computation, inner);
      if (kind.empty()) continue;
      found = true;
      if (part == CollectivePart::goes_on || part == CollectivePart::ends) continue;
      const Seconds until = line.begin_collective(time_of(kind, inner));
      if (part == CollectivePart::begins) {
        ends.fused.push_back(until);
      } else if (asynchronous) {
        ends.by_id[around.id] = {until, true};
      } else {
        line.wait_for_collective(until);
      }
    }
    if (part == CollectivePart::ends && !ends.fused.empty()) {
      line.wait_for_collective(ends.fused.front());
      ends.fused.pop_front();
    }
    return found;
  }

  Seconds time_of(const std::string& kind, const HloInstruction& collective) const {
    return collective_time(*slice_.network, kind, payload(lookup_, collective), group_of(collective));
  }

  Seconds time_of_kernel(const HloInstruction& kernel) const {
    Bytes moved = kernel.shape.bytes();
    for (std::size_t i = 0; i < kernel.operands.size(); ++i)
      if (const HloInstruction* operand = lookup_.operand(kernel, i)) moved += operand->shape.bytes();
    const double bytes = stated(kernel.backend_config, "bytes_accessed").value_or(static_cast<double>(moved.count()));
    const double flops = stated(kernel.backend_config, "flops").value_or(0);
    return Seconds(std::max(bytes / slice_.bandwidth.count(), flops / slice_.peak.count()));
  }

  double trips_of(const HloInstruction& loop) { return static_cast<double>(loop_trips(lookup_, loop).value_or(1)); }

  const HloLookup lookup_;
  const Slice& slice_;
  std::int64_t visits_ = 0;
  std::map<std::int64_t, StepTime> played_;  // by a computation's id
};

}  // namespace

StepTime step_time(const pjrt::HloModule& module, const Slice& slice) {
  CHECK(slice.network && slice.cycles_per_second > 0, "{} has no clock or no network", slice.name);
  return Player(module, slice).play(module.entry, 0);
}

}  // namespace systole::prove
