#include "operate/cli/plan_prove.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/files.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/printer.h"
#include "operate/cli/prove_job.h"

namespace systole::cli {
namespace {

// Of words that may be many lines; the document has all of them.
std::string first_line(const std::string& words) {
  constexpr std::size_t kMost = 160;
  std::string line = words.substr(0, words.find('\n'));
  if (line.size() > kMost) line = line.substr(0, line.rfind(' ', kMost)) + " ...";
  return line;
}

std::string refusal_words(const prove::Proof& proof) {
  if (!proof.refusal.empty()) return first_line(proof.refusal);
  if (!proof.memory) return "it does not fit";
  return fmt::format("needs {} of {}", to_string(proof.memory->needed()),
                     proof.memory->limit ? to_string(*proof.memory->limit) : "a device");
}

}  // namespace

Result<prove::Slice> slice_of(const PlannedOffer& offer, const Catalog& catalog) {
  if (offer.slices > 1)
    return error(ErrorKind::unsupported, "compilers are asked about one slice, and {} is {}", offer.target,
                 offer.slices);
  if (offer.slice) {
    // As the catalog has its torus: v5e:1x1, v5p:2x2x1.
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

Status LayoutProver::check(const std::vector<PlannedOffer>& offers, const Catalog& catalog) {
  std::optional<Error> why;
  for (const PlannedOffer& offer : offers) {
    const Result<prove::Slice> slice = slice_of(offer, catalog);
    const Result<pjrt::PluginPlace> place = slice.ok() ? pjrt::find_plugin(slice->plugin, pjrt::plugins_folder())
                                                       : Result<pjrt::PluginPlace>(slice.error());
    if (place.ok()) return {};
    // What can be got is the better hint.
    if (!why || (slice.ok() && why->hint.empty())) why = place.error();
  }
  if (!why) return {};
  why->message = "--prove: nothing that --on names can be proved here: " + why->message;
  return *why;
}

LayoutProver::LayoutProver(const Workload& asked, const std::vector<PlannedOffer>& offers, const Catalog& catalog,
                           Context& context)
    : asked_(asked), offers_(offers), catalog_(catalog), context_(context) {
  std::string folder;
  if (Result<std::unique_ptr<Store>> opened = open_proof_store(folder); opened.ok())
    store_ = *std::move(opened);
  else
    context.out.warning(opened.error());
  if (store_ != nullptr) cache_.emplace(*store_);
}

Result<prove::Proved> LayoutProver::proved(const Estimated& estimated) {
  const PlannedOffer& offer = offers_[estimated.offer];
  const prove::Slice slice = TRY(slice_of(offer, catalog_));
  if (estimated.candidate.staged())
    return error(ErrorKind::unsupported,
                 "a pipeline's stages are Programs of their own, which compilers are not given");
  TRY(pjrt::find_plugin(slice.plugin, pjrt::plugins_folder()));
  const JobOnSlice job = TRY(job_on(workload_of(asked_, estimated.candidate), slice, catalog_));
  prove::ProveOptions options;
  options.child = {"/proc/self/exe", "prove", "--child"};
  options.plugins = pjrt::plugins_folder();
  options.temporary = temporary_folder();
  options.partitions = job.module.devices;
  const SignalWatch signals;
  options.limits.stop = [&signals] { return signals.stop_requested(); };
  options.limits.progress = [&](const prove::ChildProgress& seen) {
    context_.out.progress(
        fmt::format("{} {} for {}: {:.0f} s, {}", seen.started ? "compiling" : "starting the compiler",
                    to_string(estimated.candidate), slice.name, seen.time.count(), to_string(seen.resident)));
  };
  return prove::prove(job.module.text, asked_.name, slice, options, cache_ ? &*cache_ : nullptr, context_.clock);
}

std::optional<std::string> LayoutProver::judge(const Estimated& estimated) {
  ProvedLayout layout{
      .offer = estimated.offer, .candidate = estimated.candidate, .predicted = estimated.memory.total()};
  Result<prove::Proved> said = [&]() -> Result<prove::Proved> {
    try {
      return proved(estimated);
    } catch (const Failure& failure) {  // of its Program
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
      context_.out.warning(note);
    }
  layout.cached = said->cached;
  layout.proof = std::move(said->proof);
  std::optional<std::string> why;
  if (!layout.proof->fits)
    why = layout.proof->compiler.substr(0, layout.proof->compiler.find(',')) + ": " + refusal_words(*layout.proof);
  proved_.push_back(std::move(layout));
  return why;
}

const ProvedLayout* proof_of_layout(const OfferedPlan& plan, const Estimated& estimated) {
  for (const ProvedLayout& one : plan.proved)
    if (one.offer == estimated.offer && one.candidate == estimated.candidate) return &one;
  return nullptr;
}

std::string proved_text(const OfferedPlan& plan, int width) {
  if (plan.proved.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  const bool timed =
      std::ranges::any_of(plan.proved, [](const ProvedLayout& one) { return one.proof && one.proof->step; });
  for (const ProvedLayout& one : plan.proved) {
    const std::string name =
        (plan.request.offers.size() > 1 ? plan.request.offers[one.offer].offered.name + ", " : "") +
        to_string(one.candidate);
    if (!one.proof) {
      rows.push_back({name, to_string(one.predicted), "-", "not proved: " + one.why, ""});
      continue;
    }
    const prove::Proof& proof = *one.proof;
    rows.push_back({name, to_string(one.predicted), proof.memory ? to_string(proof.memory->needed()) : "-",
                    proof.fits ? "fits" : "does not fit: " + refusal_words(proof),
                    proof.step ? to_string(proof.step->total()) : ""});
  }
  const auto first = std::ranges::find_if(plan.proved, [](const ProvedLayout& one) { return one.proof.has_value(); });
  return "\n" +
         table({"memory, as the compiler has it", "predicted>", "compiled>", "verdict", timed ? "its step>" : ""}, rows,
               width) +
         (first == plan.proved.end()
              ? ""
              : fmt::format("compiled by {}; predicted is with what the vendor's runtime and stack take besides\n",
                            first->proof->compiler));
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

}  // namespace systole::cli
