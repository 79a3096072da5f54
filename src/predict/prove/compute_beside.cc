#include "predict/prove/compute_beside.h"

#include <array>

#include "describe/ir/op.h"

namespace systole::prove {
namespace {

constexpr std::size_t kUnnamed =
    kNumOpClasses;  // not from an op of Systole: the compiler's own copies, and casts it moved

// Loops over layers move slices in and out of stacks, so a repeat counts as movement.
std::size_t class_of_name(const std::string& op) {
  if (op == "repeat") return static_cast<std::size_t>(OpClass::movement);
  const OpDef* known = find_op(op);
  return known == nullptr ? kUnnamed : static_cast<std::size_t>(class_of(*known));
}

}  // namespace

std::optional<double> ComputeLine::ratio() const {
  if (!predicted || !scheduled || !(*scheduled > Seconds())) return std::nullopt;
  return predicted->count() / scheduled->count();
}

std::vector<ComputeLine> compute_lines(const JobOnSlice& job, const Proof* proof) {
  const bool told = proof != nullptr && proof->compute && proof->executed.cycles > 0;
  std::array<Seconds, kNumOpClasses + 1> scheduled{};
  if (told) {
    const Seconds cycle = *proof->compute * (1 / proof->executed.cycles);
    for (const OpCycles& op : proof->executed.by_op) scheduled[class_of_name(op.op)] += cycle * op.cycles;
  }
  if (!told && !job.compute) return {};
  std::vector<ComputeLine> lines(1);
  lines[0].name = "all";
  if (job.compute) lines[0].predicted = job.compute->total();
  if (told) lines[0].scheduled = proof->compute;
  for (std::size_t c = 0; c <= kUnnamed; ++c) {
    ComputeLine line;
    line.name = c == kUnnamed ? "unnamed" : name_of(static_cast<OpClass>(c));
    if (job.compute && c != kUnnamed) line.predicted = (*job.compute)[static_cast<OpClass>(c)];
    if (told) line.scheduled = scheduled[c];
    if (line.predicted.value_or(Seconds()) + line.scheduled.value_or(Seconds()) > Seconds()) lines.push_back(line);
  }
  return lines;
}

Node compute_node(const JobOnSlice& job, const Proof* proof) {
  Node node = Node::map({});
  for (const ComputeLine& line : compute_lines(job, proof)) {
    Node times = Node::map({});
    if (line.predicted) times.set("predicted_s", line.predicted->count());
    if (line.scheduled) times.set("scheduled_s", line.scheduled->count());
    if (const std::optional<double> ratio = line.ratio()) times.set("ratio", *ratio);
    node.set(line.name, std::move(times));
  }
  return node;
}

}  // namespace systole::prove
