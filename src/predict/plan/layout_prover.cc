#include "predict/plan/layout_prover.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/files.h"
#include "ground/process/signal_watch.h"
#include "predict/prove/job_on_slice.h"

namespace systole {
namespace {

// The document holds all lines.
std::string first_line(const std::string& words) {
  constexpr std::size_t kMost = 160;
  std::string line = words.substr(0, words.find('\n'));
  if (line.size() > kMost) line = line.substr(0, line.rfind(' ', kMost)) + " ...";
  return line;
}

// The slice that an offer is. Errors: unsupported: several slices, or a chip without a known compiler; as parse_slice.
Result<prove::Slice> slice_of(const ClusterOffer& offer, const Catalog& catalog) {
  if (offer.slices > 1)
    return error(ErrorKind::unsupported, "compilers are asked about one slice, and {} is {}", offer.target,
                 offer.slices);
  if (offer.slice) {
    // With the number of dims of the catalog's torus: v5e:1x1, v5p:2x2x1.
    std::vector<std::int64_t> shape = offer.slice->shape;
    const CatalogEntry& chip = *TRY(catalog.find(offer.accelerator));
    const auto dims = chip.facts.find("torus.dims");
    while (dims != chip.facts.end() && static_cast<double>(shape.size()) < dims->second.value) shape.push_back(1);
    return prove::parse_slice(fmt::format("{}:{}", offer.accelerator, fmt::join(shape, "x")), catalog);
  }
  const std::int64_t each = offer.chips / offer.machines;
  return prove::parse_slice(offer.machines == 1 ? fmt::format("{}:{}", offer.accelerator, each)
                                                : fmt::format("{}:{}x{}", offer.accelerator, offer.machines, each),
                            catalog);
}

}  // namespace

std::string refusal_words(const prove::Proof& proof) {
  if (!proof.refusal.empty()) return first_line(proof.refusal);
  if (!proof.memory) return "it does not fit";
  return fmt::format("needs {} of {}", to_string(proof.memory->needed()),
                     proof.memory->limit ? to_string(*proof.memory->limit) : "a device");
}

Status LayoutProver::check(const std::vector<ClusterOffer>& offers, const Catalog& catalog) {
  std::optional<Error> why;
  for (const ClusterOffer& offer : offers) {
    const Result<prove::Slice> slice = slice_of(offer, catalog);
    const Result<pjrt::PluginPlace> place = slice.ok() ? pjrt::find_plugin(slice->plugin, pjrt::plugins_folder())
                                                       : Result<pjrt::PluginPlace>(slice.error());
    if (place.ok()) return {};
    // A plugin that can be installed is the better hint.
    if (!why || (slice.ok() && why->hint.empty())) why = place.error();
  }
  if (!why) return {};
  why->message = "--prove: nothing that --on names can be proved here: " + why->message;
  return *why;
}

LayoutProver::LayoutProver(const Workload& asked, const std::vector<PlannedShape>& shapes,
                           const std::vector<ClusterOffer>& offers, const Catalog& catalog,
                           const PlanMessages& messages, Clock& clock)
    : asked_(asked), shapes_(shapes), offers_(offers), catalog_(catalog), messages_(messages), clock_(clock) {
  std::string folder;
  if (Result<std::unique_ptr<Store>> opened = prove::open_proof_store(folder); opened.ok())
    store_ = *std::move(opened);
  else
    messages.warning(opened.error());
  if (store_ != nullptr) cache_.emplace(*store_);
}

Result<prove::Proved> LayoutProver::proved(const Estimated& estimated) {
  const ClusterOffer& offer = offers_[estimated.offer];
  const prove::Slice slice = TRY(slice_of(offer, catalog_));
  if (estimated.candidate.staged())
    return error(ErrorKind::unsupported,
                 "a pipeline's stages are Programs of their own, which compilers are not given");
  TRY(pjrt::find_plugin(slice.plugin, pjrt::plugins_folder()));
  std::vector<std::int64_t> lengths;
  for (const PlannedShape& shape : shapes_) lengths.push_back(shape.length);
  const prove::JobOnSlice job = TRY(prove::job_on(workload_of(asked_, estimated.candidate), slice, catalog_, lengths));
  prove::ProveOptions options;
  options.child = {"/proc/self/exe", "prove", "--child"};
  options.plugins = pjrt::plugins_folder();
  options.temporary = temporary_folder();
  options.partitions = job.module.devices;
  const SignalWatch signals;
  options.limits.stop = [&signals] { return signals.stop_requested(); };
  options.limits.progress = [&](const prove::ChildProgress& seen) {
    messages_.progress(fmt::format("{} {} for {}: {:.0f} s, {}", seen.started ? "compiling" : "starting the compiler",
                                   to_string(estimated.candidate), slice.name, seen.time.count(),
                                   to_string(seen.resident)));
  };
  return prove::prove(job.module.text, asked_.name, slice, options, cache_ ? &*cache_ : nullptr, clock_);
}

std::optional<std::string> LayoutProver::judge(const Estimated& estimated) {
  ProvedLayout layout{
      .offer = estimated.offer, .candidate = estimated.candidate, .predicted = estimated.memory.total()};
  Result<prove::Proved> said = [&]() -> Result<prove::Proved> {
    try {
      return proved(estimated);
    } catch (const Failure& failure) {  // from building the Program
      return failure.error();
    }
  }();
  if (!said.ok()) {
    if (said.error().kind == ErrorKind::interrupted) fail(said.error());
    layout.why = said.error().message;
    proved_.push_back(std::move(layout));
    return std::nullopt;
  }
  for (const Error& note : said->notes)
    if (std::ranges::find(told_, note.message) == told_.end()) {
      told_.push_back(note.message);
      messages_.warning(note);
    }
  layout.cached = said->cached;
  layout.proof = std::move(said->proof);
  std::optional<std::string> why;
  if (!layout.proof->fits)
    why = layout.proof->compiler.substr(0, layout.proof->compiler.find(',')) + ": " + refusal_words(*layout.proof);
  proved_.push_back(std::move(layout));
  return why;
}

Node proved_node(const ProvedLayout* proved) {
  if (proved == nullptr) return {};
  if (!proved->proof) return Node::map({{"verdict", "not_proved"}, {"why", proved->why}});
  const prove::Proof& proof = *proved->proof;
  const auto bytes = [](const std::optional<Bytes>& some) { return some ? Node(some->count()) : Node(); };
  std::optional<Bytes> needed, limit;
  if (proof.memory) {
    needed = proof.memory->needed();
    limit = proof.memory->limit;
  }
  return Node::map({{"verdict", proof.fits ? "fits" : "does_not_fit"},
                    {"why", proof.refusal.empty() ? Node() : Node(proof.refusal)},
                    {"needed_bytes", bytes(needed)},
                    {"limit_bytes", bytes(limit)},
                    {"step_seconds", proof.step ? Node(proof.step->total().count()) : Node()},
                    {"slice", proof.slice},
                    {"compiler", proof.compiler},
                    {"made", proof.made},
                    {"cached", proved->cached}});
}

}  // namespace systole
