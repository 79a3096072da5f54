#include "predict/prove/proof_text.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/prove/published.h"

namespace systole::prove {
namespace {

constexpr std::size_t kShown = 12;  // collectives; --json has all
constexpr Bytes kScalar{64};        // loop counters and comparisons are not worth a line

std::string percent(double ratio) { return fmt::format("{:.1f}%", 100 * ratio); }

std::string memory_text(const CompiledMemory& memory, const Slice& slice) {
  std::vector<std::vector<std::string>> rows{{"arguments", to_string(memory.arguments)},
                                             {"temporaries", to_string(memory.temporaries)},
                                             {"outputs", to_string(memory.outputs)}};
  if (memory.aliased.count() > 0) rows.push_back({"of these in arguments' places", "-" + to_string(memory.aliased)});
  const Bytes limit = memory.limit.value_or(slice.memory);
  rows.push_back({"needed", fmt::format("{}", to_string(memory.needed()))});
  std::string text = "\n" + table({"memory of a device", "bytes>"}, rows);
  text += fmt::format("{} of the {} that {}\n", percent(memory.needed() / limit), to_string(limit),
                      memory.limit ? "the compiler gives" : "a device has");
  if (memory.on_chip.count() > 0)
    text += fmt::format("{} more of temporaries in the chip's own memory\n", to_string(memory.on_chip));
  if (memory.host.count() > 0) text += fmt::format("{} more in the host's memory\n", to_string(memory.host));
  return text;
}

std::string collectives_text(const Proof& proof, int width) {
  const std::vector<CompiledCollective>& all = proof.executed.collectives;
  if (all.empty()) return proof.partitions * proof.replicas > 1 ? "\nno collectives\n" : "";
  std::vector<std::vector<std::string>> rows;
  std::int64_t times = 0;
  Bytes sum;
  for (const CompiledCollective& collective : all) {
    times += collective.executed;
    sum += collective.all();
    if (rows.size() == kShown) continue;
    rows.push_back({collective.kind, with_commas(collective.executed), to_string(collective.bytes),
                    to_string(collective.all()), collective.group > 0 ? std::to_string(collective.group) : "all",
                    collective.source.empty() ? "-" : collective.source});
  }
  std::string text = "\n" + table({"collective", "times>", "bytes>", "all>", "among>", "from"}, rows, width);
  if (all.size() > kShown) text += fmt::format("and {} kinds more: --json has all\n", all.size() - kShown);
  return text + fmt::format("{}, {}, in one run of the program\n", counted(times, "time"), to_string(sum));
}

// A second opinion: the compiler's schedule, with times for the network and the memory.
std::string step_text(const StepTime& step, const Slice& slice) {
  std::vector<std::vector<std::string>> rows{{"compute", to_string(step.compute)}};
  if (step.kernels > Seconds()) rows.push_back({"kernels, at what they state or move", to_string(step.kernels)});
  rows.push_back({"exposed collectives", to_string(step.exposed)});
  rows.push_back({"exposed copies", to_string(step.copies)});
  rows.push_back({"all", to_string(step.total())});
  std::string text = "\n" + table({"one run by the compiler's schedule", "time>"}, rows);
  if (step.collectives > Seconds()) {
    const Seconds hidden = step.collectives - step.exposed;
    text += fmt::format("collectives take {} in all; what the cores do meanwhile hides {} of it; links of {} one way\n",
                        to_string(step.collectives), hidden > Seconds(1e-9) ? to_string(hidden) : "nothing",
                        to_string(slice.network->link));
  }
  return text + known_error(published_steps(), slice.chip) + "\n";
}

std::string time_text(const Proof& proof, const Slice& slice) {
  std::string text;
  const double flops = proof.executed.product_flops;
  if (flops > 0) text += fmt::format("\nproducts           {:.4g} FLOPs of a device in one run\n", flops);
  if (proof.compute) {
    text += fmt::format("compute            {}: {} cycles at {:.3g} GHz", to_string(*proof.compute),
                        with_commas(static_cast<std::int64_t>(proof.executed.cycles)), slice.cycles_per_second / 1e9);
    if (flops > 0)
      text += fmt::format("; {} of the peak", percent(flops / proof.compute->count() / slice.peak.count()));
    text += "\n";
  }
  if (proof.step) text += step_text(*proof.step, slice);
  if (proof.whole && slice.cycles_per_second > 0 && !proof.executed.untimed.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const UntimedKind& kind : proof.executed.untimed) {
      if (kind.bytes <= kScalar * kind.executed) continue;
      rows.push_back({kind.name, with_commas(kind.executed), to_string(kind.bytes)});
    }
    text += "\n" + table({"without cycles", "times>", "bytes>"}, rows);
  }
  if (!proof.executed.endless.empty())
    text += fmt::format("counted once, for their rounds are not known: {}\n",
                        counted(proof.executed.endless.size(), "loop"));
  return text;
}

// The compiler's flags: those of the catalog for the chip, and the user's.
std::string flags_text(const Proof& proof, const Slice& slice) {
  std::string text;
  for (const auto& flag : proof.flags) {
    const bool of_chip = std::ranges::any_of(slice.flags, [&](const auto& its) {
      return its.first == flag.first && pjrt::to_string(its.second) == flag.second;
    });
    text += fmt::format("with {}={}{}\n", flag.first, flag.second,
                        of_chip ? fmt::format(", the catalog's for {}", slice.chip) : "");
  }
  return text;
}

}  // namespace

std::string proof_text(const Proof& proof, const Slice& slice, const std::string& name, bool cached, int width) {
  const std::int64_t used = proof.partitions * proof.replicas;
  std::string text = fmt::format("{} on {}: {}\n", name, proof.slice, proof.fits ? "fits" : "does not fit");
  if (!proof.refusal.empty()) text += proof.refusal + "\n";
  text += fmt::format("{} of {}; {}, {} and {}{}\n", used, counted(proof.slice_devices, "device"), proof.compiler,
                      to_string(proof.took), to_string(proof.took_memory),
                      cached ? fmt::format("; proved at {}", proof.made) : "");
  text += flags_text(proof, slice);
  if (proof.memory) text += memory_text(*proof.memory, slice);
  text += collectives_text(proof, width);
  return text + time_text(proof, slice);
}

std::string cache_text(const std::vector<ProofCache::Entry>& entries, const std::string& folder, int width) {
  if (entries.empty()) return fmt::format("no proofs in {}\n", folder);
  std::vector<std::vector<std::string>> rows;
  Bytes sum;
  for (const ProofCache::Entry& entry : entries) {
    sum += entry.size;
    const Proof& proof = entry.proof;
    rows.push_back({proof.made.substr(0, 19), proof.slice, proof.fits ? "fits" : "does not fit",
                    proof.memory ? to_string(proof.memory->needed()) : "-",
                    proof.compute ? to_string(*proof.compute) : "-", proof.compiler, entry.key.substr(0, 12)});
  }
  return table({"proved", "on", "", "needed>", "compute>", "by", "key"}, rows, width) +
         fmt::format("{} in {}, which takes at most {}\n", to_string(sum), folder, to_string(kCacheLimit));
}

}  // namespace systole::prove
