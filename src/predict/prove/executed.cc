#include "predict/prove/executed.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "predict/prove/instruction_facts.h"
#include "predict/prove/loop_trips.h"
#include "predict/prove/product_flops.h"

namespace systole::prove {
namespace {

using pjrt::HloComputation;
using pjrt::HloInstruction;

constexpr std::int64_t kMost = std::int64_t{1} << 60;

// Saturates at kMost, for programs that would never end.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) || result > kMost ? kMost : result;
}
void add_to(Bytes& sum, Bytes bytes, std::int64_t times) {
  sum = Bytes(std::min(kMost, sum.count() + product(bytes.count(), times)));
}
void add_to(std::int64_t& sum, std::int64_t count) { sum = std::min(kMost, sum + count); }

class Walk {
 public:
  explicit Walk(const pjrt::HloModule& module) : lookup_(module) {}

  ExecutedModule run() {
    walk(lookup_.module().entry, 1, 0);
    for (auto& [key, collective] : collectives_) result_.collectives.push_back(std::move(collective));
    std::ranges::stable_sort(result_.collectives, [](const CompiledCollective& a, const CompiledCollective& b) {
      return a.all() > b.all();
    });
    for (auto& [name, kind] : untimed_) result_.untimed.push_back(std::move(kind));
    for (const auto& [op, cycles] : by_op_) result_.by_op.push_back({op, cycles});
    return std::move(result_);
  }

 private:
  void walk(std::int64_t id, std::int64_t times, int depth) {
    if (depth > kDeepestCall) return;
    for (const HloInstruction& instruction : lookup_.computation(id).instructions) {
      if (!visit()) return;
      see(instruction, times, depth);
    }
  }

  void see(const HloInstruction& instruction, std::int64_t times, int depth) {
    if (const std::string kind = collective_kind(instruction.opcode); !kind.empty()) add(instruction, kind, times);
    count_flops(instruction, times);
    if (instruction.opcode == "while") {
      const std::optional<std::int64_t> trips = trips_of(instruction);
      if (!trips) result_.endless.push_back(instruction.name);
      for (const std::int64_t called : instruction.called) walk(called, product(times, trips.value_or(1)), depth + 1);
      return;
    }
    if (instruction.opcode == "conditional") {
      const auto costliest = std::ranges::max_element(
          instruction.called, {}, [&](std::int64_t branch) { return cycles_of(branch, depth + 1); });
      if (costliest != instruction.called.end()) walk(*costliest, times, depth + 1);
      return;
    }
    if (instruction.opcode == "call") {
      for (const std::int64_t called : instruction.called) walk(called, times, depth + 1);
      return;
    }
    // A fusion or an asynchronous start is one instruction. A collective inside it takes its time.
    bool collective = false;
    if (instruction.opcode == "fusion" || instruction.opcode == "async-start")
      for (const std::int64_t called : instruction.called) collective |= find_inside(called, times, depth + 1);
    take_time(instruction, times, collective);
  }

  // Counts what is inside. Returns whether a collective is, including one that began before.
  bool find_inside(std::int64_t id, std::int64_t times, int depth) {
    if (depth > kDeepestCall || !visit()) return false;
    const HloComputation& computation = lookup_.computation(id);
    const CollectivePart part = part_in(computation);
    const bool begun_before = part == CollectivePart::goes_on || part == CollectivePart::ends;
    bool found = begun_before;
    for (const HloInstruction& inner : computation.instructions) {
      if (const std::string kind = collective_kind(computation, inner); !kind.empty()) {
        found = true;
        if (!begun_before) add(inner, kind, times);
        if (!begun_before) untimed(inner.opcode, inner.shape.bytes(), times);
      }
      count_flops(inner, times);
      if (inner.opcode == "fusion" || inner.opcode == "async-start" || inner.opcode == "call")
        for (const std::int64_t called : inner.called) found |= find_inside(called, times, depth + 1);
    }
    return found;
  }

  void count_flops(const HloInstruction& instruction, std::int64_t times) {
    if (instruction.opcode != "dot" && instruction.opcode != "convolution") return;
    result_.product_flops += product_flops(instruction, lookup_.operand(instruction, 0)) * static_cast<double>(times);
  }

  void take_time(const HloInstruction& instruction, std::int64_t times, bool collective) {
    const double cycles = estimated_cycles(instruction);
    if (cycles > 0) {
      result_.cycles += cycles * static_cast<double>(times);
      by_op_[op_of(instruction)] += cycles * static_cast<double>(times);
      add_to(result_.timed, times);
      return;
    }
    if (collective || is_free(instruction)) return;
    const std::string name = instruction.custom_call_target.empty()
                                 ? instruction.opcode
                                 : instruction.opcode + " " + instruction.custom_call_target;
    untimed(name, instruction.shape.bytes(), times);
  }

  std::string op_of(const HloInstruction& instruction) {
    if (instruction.opcode == "fusion") {
      for (const std::int64_t called : instruction.called)
        if (const HloInstruction* product = product_in(called, 0)) return op_of_source(product->source);
    }
    return op_of_source(instruction.source);
  }

  const HloInstruction* product_in(std::int64_t id, int depth) {
    if (depth > kDeepestCall || !visit()) return nullptr;
    for (const HloInstruction& inner : lookup_.computation(id).instructions) {
      if (inner.opcode == "dot" || inner.opcode == "convolution") return &inner;
      for (const std::int64_t called : inner.called)
        if (const HloInstruction* product = product_in(called, depth + 1)) return product;
    }
    return nullptr;
  }

  bool visit() {
    if (++visits_ == kMostVisits) result_.endless.emplace_back("the program");
    return visits_ < kMostVisits;
  }

  void untimed(const std::string& name, Bytes bytes, std::int64_t times) {
    UntimedKind& kind = untimed_[name];
    kind.name = name;
    ++kind.written;
    add_to(kind.executed, times);
    add_to(kind.bytes, bytes, times);
  }

  void add(const HloInstruction& instruction, const std::string& kind, std::int64_t times) {
    const Bytes bytes = payload(lookup_, instruction);
    const std::int64_t group = group_of(instruction);
    CompiledCollective& collective = collectives_[{kind, instruction.source, bytes.count(), group}];
    collective.kind = kind;
    collective.source = instruction.source;
    collective.bytes = bytes;
    collective.group = group;
    ++collective.written;
    add_to(collective.executed, times);
  }

  std::optional<std::int64_t> trips_of(const HloInstruction& loop) {
    const auto [at, added] = trips_.try_emplace(loop.id);
    if (added) at->second = loop_trips(lookup_, loop);
    return at->second;
  }

  double cycles_of(std::int64_t id, int depth) {
    if (depth > kDeepestCall) return 0;
    const auto known = cycles_.find(id);
    if (known != cycles_.end()) return known->second;
    cycles_[id] = 0;  // for one that calls itself
    double sum = 0;
    for (const HloInstruction& instruction : lookup_.computation(id).instructions) {
      sum += estimated_cycles(instruction);
      if (instruction.opcode != "while" && instruction.opcode != "conditional" && instruction.opcode != "call")
        continue;
      const double times = instruction.opcode == "while" ? static_cast<double>(trips_of(instruction).value_or(1)) : 1.0;
      for (const std::int64_t called : instruction.called) sum += times * cycles_of(called, depth + 1);
    }
    return cycles_[id] = sum;
  }

  const HloLookup lookup_;
  ExecutedModule result_;
  std::int64_t visits_ = 0;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, CompiledCollective> collectives_;
  std::map<std::string, UntimedKind> untimed_;
  std::map<std::string, double> by_op_;
  std::map<std::int64_t, std::optional<std::int64_t>> trips_;  // by the id of the loop
  std::map<std::int64_t, double> cycles_;                      // by the id of the computation
};

}  // namespace

Bytes CompiledCollective::all() const { return Bytes(product(bytes.count(), executed)); }

ExecutedModule executed_of(const pjrt::HloModule& module) { return Walk(module).run(); }

}  // namespace systole::prove
