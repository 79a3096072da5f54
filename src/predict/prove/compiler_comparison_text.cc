#include "predict/prove/compiler_comparison_text.h"

#include <cmath>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/prove/compiler_comparison.h"
#include "predict/prove/compute_beside.h"

namespace systole::prove {
namespace {

std::string signed_bytes(Bytes bytes) {
  return bytes < Bytes() ? "-" + to_string(Bytes(-bytes.count())) : to_string(bytes);
}

// The predicted temporaries by owner: "predicted temporaries  bytes".
std::string terms_text(const CompiledPeak& peak) {
  std::vector<std::vector<std::string>> rows;
  for (const PeakTerm& term : peak.terms) rows.push_back({name_of(term.owner), to_string(term.bytes)});
  if (peak.gaps.count() > 0) rows.push_back({"holes in the heap", to_string(peak.gaps)});
  if (peak.on_chip.count() > 0) rows.push_back({"beside them, in the chip's own memory", to_string(peak.on_chip)});
  return rows.empty() ? "none\n" : table({"predicted temporaries", "bytes>"}, rows);
}

std::string text_of(const std::optional<Seconds>& time) { return time ? to_string(*time) : "-"; }

}  // namespace

std::string compute_text(const JobOnSlice& job, const Proof* proof) {
  const std::vector<ComputeLine> lines = compute_lines(job, proof);
  if (lines.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 1; i <= lines.size(); ++i) {  // the sum last
    const ComputeLine& line = lines[i % lines.size()];
    const std::optional<double> ratio = line.ratio();
    rows.push_back(
        {line.name, text_of(line.predicted), text_of(line.scheduled), ratio ? fmt::format("{:.2f}", *ratio) : "-"});
  }
  std::string text = "\n" + table({"compute of one run", "predicted>", "scheduled>", "ratio>"}, rows);
  if (!lines[0].predicted) return text + "nothing is predicted: the catalog has no schedule.* of this chip\n";
  if (const std::optional<double> ratio = lines[0].ratio())
    text += fmt::format("predicted is {:.1f}% {} what the compiler schedules\n", 100 * std::abs(*ratio - 1),
                        *ratio < 1 ? "below" : "above");
  return text;
}

std::string beside_text(const JobOnSlice& job, const Proof& proof, int width) {
  const Function& step = job.function();
  const CompilerComparison both = beside(job.program, step, job.module, proof);
  std::string text = fmt::format("\nthe Program on {}\n", job.mesh);
  if (proof.memory) {
    std::vector<std::vector<std::string>> rows;
    const auto row = [&](const char* name, Bytes ours, Bytes predicted, Bytes theirs) {
      rows.push_back({name, to_string(ours), to_string(predicted), to_string(theirs), signed_bytes(theirs - ours)});
    };
    row("arguments", both.ours.arguments, job.peak.arguments, proof.memory->arguments);
    row("temporaries", both.ours.temporaries, job.peak.temporaries, proof.memory->temporaries);
    row("outputs that are not aliased", both.ours.outputs - both.ours.aliased, job.peak.outputs,
        proof.memory->outputs - proof.memory->aliased);
    row("needed", both.ours.needed(), job.peak.needed(), proof.memory->needed());
    text += table({"memory of a device", "planned>", "predicted>", "compiled>", "difference>"}, rows, width);
    const double off = job.peak.needed() / proof.memory->needed() - 1;
    text += fmt::format("predicted is {:.1f}% {} what is compiled\n", 100 * std::abs(off), off < 0 ? "below" : "above");
    text += terms_text(job.peak);
  }
  text += fmt::format("its arena, with what other schedules need: {}\n", to_string(both.arena));
  text += fmt::format("FLOPs of a device: {} planned in all, {} of them the model's; {:.4g} compiled in products\n",
                      with_commas(step.work.flops), with_commas(step.work.model_flops), proof.executed.product_flops);
  for (const std::string& note : job.module.notes) text += note + "\n";
  if (proof.whole) text += compute_text(job, &proof);
  if (both.collectives.empty()) return text;
  std::vector<std::vector<std::string>> rows;
  bool equal = true;
  for (const CollectivesBeside& kind : both.collectives) {
    equal &= kind.our_bytes == kind.their_bytes;
    rows.push_back({kind.kind, with_commas(kind.ours), with_commas(kind.theirs), to_string(kind.our_bytes),
                    to_string(kind.their_bytes), signed_bytes(kind.their_bytes - kind.our_bytes)});
  }
  text += "\n" + table({"collectives", "planned>", "compiled>", "bytes planned>", "bytes compiled>", "difference>"},
                       rows, width);
  if (equal) return text + "the bytes that were planned\n";
  for (const CompiledCollective& collective : both.unplanned)
    text += fmt::format("not planned: {} of {}, {}, for {}\n", collective.kind, to_string(collective.bytes),
                        counted(collective.executed, "time"), collective.source.empty() ? "-" : collective.source);
  return text;
}

std::string predicted_text(const JobOnSlice& job, const Slice& slice) {
  const CompiledPeak& peak = job.peak;
  std::string text = fmt::format("{} on {}, on {}: predicted {}\n", job.name, slice.name, job.mesh,
                                 peak.needed() <= slice.memory ? "to fit" : "not to fit");
  text += "\n" + table({"memory of a device", "bytes>"}, {{"arguments", to_string(peak.arguments)},
                                                          {"temporaries", to_string(peak.temporaries)},
                                                          {"outputs that are not aliased", to_string(peak.outputs)},
                                                          {"needed", to_string(peak.needed())}});
  text += fmt::format("{:.1f}% of the {} that a device has; a compiler gives a little less\n\n",
                      100 * (peak.needed() / slice.memory), to_string(slice.memory));
  return text + terms_text(peak) + compute_text(job, nullptr);
}

}  // namespace systole::prove
