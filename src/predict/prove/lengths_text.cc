#include "predict/prove/lengths_text.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/prove/compiler_comparison.h"

namespace systole::prove {
namespace {

// "3 of 3 lengths fit".
std::string verdict_text(std::ptrdiff_t fitting, std::size_t all, const char* verb) {
  return fmt::format("{} of {} {}\n", fitting, counted(all, "length"), verb);
}

Node with_length(const JobOnSlice& step, Node node) {
  return node.set("row_tokens", step.length).set("rows", step.rows);
}

}  // namespace

std::string lengths_text(std::span<const JobOnSlice> steps, std::span<const Proved> proofs, int width) {
  const bool timed = std::ranges::any_of(proofs, [](const Proved& one) { return one.proof.step.has_value(); });
  std::vector<std::vector<std::string>> rows;
  std::string refusals;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const JobOnSlice& step = steps[s];
    const Proof& proof = proofs[s].proof;
    const Function& function = step.function();
    const CompilerComparison both = beside(step.program, function, step.module, proof);
    rows.push_back({with_commas(step.length), with_commas(step.rows), proof.fits ? "fits" : "does not fit",
                    to_string(both.ours.needed()), to_string(step.peak.needed()),
                    proof.memory ? to_string(proof.memory->needed()) : "-",
                    fmt::format("{:.4g}", 1.0 * function.work.flops),
                    proof.executed.product_flops > 0 ? fmt::format("{:.4g}", proof.executed.product_flops) : "-"});
    if (timed) rows.back().push_back(proof.step ? to_string(proof.step->total()) : "-");
    if (!proof.refusal.empty()) refusals += fmt::format("rows of {}: {}\n", with_commas(step.length), proof.refusal);
  }
  std::vector<std::string> head{"rows of>",   "rows a step>", "",       "planned>",
                                "predicted>", "compiled>",    "FLOPs>", "in products>"};
  if (timed) head.push_back("one run>");
  const auto fitting = std::ranges::count_if(proofs, [](const Proved& one) { return one.proof.fits; });
  return "\n" + table(head, rows, width) + refusals +
         verdict_text(fitting, steps.size(), "fit; bytes and FLOPs are those of a device");
}

std::string predicted_lengths_text(std::span<const JobOnSlice> steps, const Slice& slice, int width) {
  std::vector<std::vector<std::string>> rows;
  std::ptrdiff_t fitting = 0;
  for (const JobOnSlice& step : steps) {
    const bool fits = step.peak.needed() <= slice.memory;
    fitting += fits ? 1 : 0;
    rows.push_back({with_commas(step.length), with_commas(step.rows), fits ? "fits" : "does not fit",
                    to_string(step.peak.needed()), fmt::format("{:.4g}", 1.0 * step.function().work.flops),
                    step.compute ? to_string(step.compute->total()) : "-"});
  }
  return "\n" + table({"rows of>", "rows a step>", "", "predicted>", "FLOPs>", "compute>"}, rows, width) +
         verdict_text(fitting, steps.size(), "are predicted to fit");
}

Node lengths_node(std::span<const JobOnSlice> steps, std::span<const Proved> proofs) {
  Node list = Node::sequence();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    Node node = with_length(steps[s], to_node(proofs[s].proof));
    list.push(node.set("cached", proofs[s].cached).set("program", beside_node(steps[s], proofs[s].proof)));
  }
  return list;
}

Node predicted_lengths_node(std::span<const JobOnSlice> steps, const Slice& slice) {
  Node list = Node::sequence();
  for (const JobOnSlice& step : steps)
    list.push(with_length(step, predicted_node(step, slice)).set("flops", step.function().work.flops));
  return list;
}

}  // namespace systole::prove
