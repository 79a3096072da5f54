#include "predict/plan/hardware_plan_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/plan/layout_prover.h"
#include "predict/plan/mean_step.h"
#include "predict/plan/plan_drawings.h"
#include "predict/plan/prediction_error.h"
#include "predict/plan/shapes_text.h"
#include "predict/plan/share_words.h"
#include "predict/prove/proof.h"

namespace systole {
namespace {

std::string dollars_text(const std::optional<Dollars>& dollars) { return dollars ? to_string(*dollars) : "unknown"; }

// A table whose last column is a bar for each share, as long as the width allows.
std::string with_bars(std::vector<std::string> heads, std::vector<std::vector<std::string>> rows,
                      const std::vector<double>& shares, int width) {
  constexpr std::size_t kLongest = 30, kShortest = 5;
  std::size_t used = 0;
  for (std::size_t column = 0; column < heads.size(); ++column) {
    std::size_t widest = heads[column].size();
    for (const std::vector<std::string>& row : rows) widest = std::max(widest, row[column].size());
    used += widest + 2;
  }
  const auto columns = static_cast<std::size_t>(width);
  const std::size_t longest = columns > used ? std::min(kLongest, columns - used) : 0;
  if (longest < kShortest) return table(std::move(heads), rows, width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double filled = std::clamp(shares[i], 0.0, 1.0) * static_cast<double>(longest);
    rows[i].emplace_back(static_cast<std::size_t>(filled + 0.5), '#');
  }
  heads.emplace_back("");
  return table(std::move(heads), rows, width);
}

constexpr double kLeastShown = 0.0005;  // share of a step; less is printed as 0.0%

std::string time_text(const StepTime& step, int width) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> shares;
  for (int s = 0; s < kNumStepShares; ++s) {
    const auto share = static_cast<StepShare>(s);
    const double part = step[share] / step.seconds;
    if (part < kLeastShown) continue;
    rows.push_back({words_of(share), to_string(Seconds(step[share])), fmt::format("{:.1f}%", 100 * part)});
    shares.push_back(part);
  }
  return with_bars({"where the time goes", ">", ">"}, std::move(rows), shares, width);
}

std::string memory_text(const DeviceMemory& memory, Bytes capacity, int width) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> shares;
  const auto add = [&](const std::string& name, Bytes bytes, double share) {
    rows.push_back({name, to_string(bytes)});
    shares.push_back(share);
  };
  for (const auto& [name, bytes] : memory.terms)
    if (bytes.count() != 0) add(name, bytes, bytes / capacity);
  add("total", memory.total(), memory.total() / capacity);
  add("device", capacity, 0);
  return with_bars({"where the memory goes", ">"}, std::move(rows), shares, width);
}

std::string batch_text(const HardwarePlan& plan, const Candidate& candidate) {
  const std::vector<PlannedShape>& shapes = plan.shapes;
  const std::int64_t rows = local_rows(shapes.empty() ? plan.workload.train.batch : shapes.back().rows, candidate);
  const std::int64_t ranks = candidate.row_parts();
  return fmt::format("{} = {} of a microbatch x {} x {}{}", counted(rows * candidate.microbatches * ranks, "row"), rows,
                     counted(candidate.microbatches, "microbatch"), counted(ranks, "data rank"),
                     shapes.empty() ? "" : fmt::format(", of {}", counted(shapes.back().length, "token")));
}

// "2 rows of 64 tokens a step".
std::string rows_words(const HardwarePlan& plan) {
  if (!plan.shapes.empty())
    return fmt::format("{:.3g} rows of {} a step on average", mean_rows(plan.shapes), lengths_words(plan.shapes));
  return fmt::format("{} of {} a step", counted(plan.workload.train.batch, "row"),
                     counted(plan.sequence_length, "token"));
}

// What the choice's pipeline requires, and the best option without one.
std::string needs_text(const HardwarePlan& plan, const Estimated& e) {
  for (std::size_t i = 0; i < plan.choice.lost.size(); ++i) {
    const LostOption& lost = plan.choice.lost[i];
    if (lost.layout && lost.offer == e.offer && !lost.estimated->candidate.staged())
      return fmt::format("{}; option {} does without", kPipelineNeeds, i + 1);
  }
  return std::string(kPipelineNeeds) + "; no layout without one fits";
}

std::string chosen_text(const HardwarePlan& plan, const PlanTextOptions& options) {
  const Estimated& e = *plan.choice.chosen;
  const ClusterOffer& offer = plan.request.offers[e.offer];
  const Bytes capacity = offer.offered.cluster.chip.capacity;
  std::string text = options.bold(offer.offered.name) + "\n";
  const auto line = [&](const char* what, const std::string& words) {
    text += fmt::format("  {:<8}{}\n", what, words);
  };
  line("layout", to_string(e.candidate));
  const PredictionKind kind = prediction_kind(plan.workload, offer.offered);
  const KnownError *of_step = known_error_of(kind, "step_time"), *of_memory = known_error_of(kind, "memory");
  line("step",
       fmt::format("{}{}, {:.1f}% MFU, {:.4g} tokens/s", to_string(Seconds(e.step.seconds)), plus_minus(of_step),
                   100 * e.utilisation, tokens_a_step(plan) / (e.step.seconds + e.waited.count())));
  line("", known_error_words(kind, of_step));
  line("total", fmt::format("{} for {}", to_string(e.total), counted(std::llround(plan.request.steps), "step")));
  std::string cost = e.dollars ? to_string(*e.dollars) + " at " : "";
  cost += price_text(offer, plan.today);
  if (e.dollars) cost += storage_rate_words(offer.offered, e);
  if (e.dollars)
    cost += fmt::format(", {} for a million tokens",
                        million_tokens_text(*e.dollars * (1e6 / (tokens_a_step(plan) * plan.request.steps))));
  line("cost", cost);
  if (const std::string words = storage_words(offer.offered, e); !words.empty())
    line("storage", fmt::format("{}: {}", plan.mount, words));
  const char* what = "quota";
  for (const std::string& limit : options.quotas) line(std::exchange(what, ""), limit);
  for (const TargetNote& note : plan.targets)
    line("target", note.words.empty() ? note.target : fmt::format("{}: {}", note.target, note.words));
  line("memory", fmt::format("{}{} of {}", to_string(e.memory.total()), plus_minus(of_memory), to_string(capacity)));
  line("", known_error_words(kind, of_memory));
  line("batch", batch_text(plan, e.candidate));
  const std::string sets = set_words(plan, e.candidate);
  line("written", sets.empty() ? "as the workload has it" : sets);
  if (e.candidate.staged()) line("needs", needs_text(plan, e));
  if (const ProductType type = offer.offered.kernels.products; type != ProductType::bf16 && type != ProductType::f32)
    line("", fmt::format("products in {} are the stack's doing: no key of the workload asks for them", name_of(type)));
  if (!plan.shapes.empty()) text += "\n" + shapes_text(shapes_of(plan, e));
  return text + "\n" + time_text(e.step, options.width) + "\n" + memory_text(e.memory, capacity, options.width);
}

std::string lost_text(const HardwarePlan& plan, bool all, int width) {
  if (plan.choice.lost.empty()) return "";
  constexpr std::size_t kShown = 24;
  const std::size_t shown = all ? plan.choice.lost.size() : std::min(kShown, plan.choice.lost.size());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const LostOption& lost = plan.choice.lost[i];
    const bool known = lost.estimated.has_value();
    rows.push_back({std::to_string(i + 1), option_name(plan, lost),
                    known ? to_string(Seconds(lost.estimated->step.seconds)) : "-",
                    known ? to_string(lost.estimated->total) : "-", known ? dollars_text(lost.estimated->dollars) : "-",
                    lost.reason, edit_words(plan, lost)});
  }
  std::string text =
      "\n" + table({"#>", "option", "step>", "total>", "dollars>", "it lost because", "would win with"}, rows, width);
  const auto staged = [](const LostOption& lost) { return lost.estimated && lost.estimated->candidate.staged(); };
  if (!(plan.choice.chosen && plan.choice.chosen->candidate.staged()) &&
      std::any_of(plan.choice.lost.begin(), plan.choice.lost.begin() + static_cast<std::ptrdiff_t>(shown), staged))
    text += fmt::format("pipe needs {}\n", kPipelineNeeds);
  if (shown < plan.choice.lost.size())
    text += fmt::format("{} more; --all lists them\n", plan.choice.lost.size() - shown);
  if (plan.choice.not_looked_at > 0)
    text += fmt::format("not looked at one by one, for they cannot be the choice: {}; --all does\n",
                        counted(plan.choice.not_looked_at, "other offer"));
  return text;
}

std::string sizes_text(const HardwarePlan& plan, int width) {
  if (plan.sizes.empty() || !plan.choice.chosen) return "";
  const Estimated& chosen = *plan.choice.chosen;
  std::vector<std::vector<std::string>> rows;
  for (const SizeOption& size : plan.sizes) {
    if (!size.alone.best) {
      rows.push_back({size.offer.offered.name,
                      size.alone.least_memory
                          ? "needs " + to_string(*size.alone.least_memory) + " a device at the least"
                          : "no layout cuts the batch so often",
                      "", "", ""});
      continue;
    }
    const Estimated& e = *size.alone.best;
    const double efficiency = chosen.step.seconds *
                              static_cast<double>(plan.request.offers[chosen.offer].offered.cluster.devices) /
                              (e.step.seconds * static_cast<double>(size.offer.offered.cluster.devices));
    rows.push_back({size.offer.offered.name, to_string(Seconds(e.step.seconds)), to_string(e.total),
                    dollars_text(e.dollars), fmt::format("{:.0f}%", 100 * efficiency)});
  }
  return "\n" + table({"other sizes", "step>", "total>", "dollars>", "speed a device>"}, rows, width);
}

std::string sensitivities_text(const HardwarePlan& plan, int width) {
  if (plan.sensitivities.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Sensitivity& one : plan.sensitivities) {
    const double ratio = one.step.count() / plan.choice.chosen->step.seconds;
    const std::string steps =
        one.of == Sensitivity::Of::region ? "the same" : fmt::format("{:+.1f}%", 100 * (ratio - 1));
    const KnownError* known = known_error_of(prediction_kind(plan.workload, one.offered), "step_time");
    rows.push_back({one.what, to_string(one.step) + (one.of == Sensitivity::Of::precision ? plus_minus(known) : ""),
                    steps, dollars_text(one.dollars), to_string(one.memory), one.fits ? "" : "does not fit"});
  }
  return "\n" + table({"the same layout, but", "step>", "by>", "dollars>", "memory>", ""}, rows, width);
}

std::string front_text(const HardwarePlan& plan, int width) {
  if (plan.request.wanted != OfferRanking::front) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Estimated& e : plan.choice.front)
    rows.push_back({plan.request.offers[e.offer].offered.name, to_string(e.candidate), to_string(e.total),
                    dollars_text(e.dollars), fmt::format("{:.1f}%", 100 * e.utilisation)});
  return "\n" + table({"nothing is both faster and cheaper than", "layout", "total>", "dollars>", "MFU>"}, rows, width);
}

std::string counts_text(const HardwarePlan& plan) {
  const SearchCounts& c = plan.choice.counts;
  const char* pipelines =
      c.without_pipelines
          ? "pipelines were not looked at: those of a model with several stacks of layers take minutes to price, and "
            "layouts without one fit\n"
      : !plan.shapes.empty() ? "pipelines and the axis context were not looked at: they have rows of one length\n"
                             : "";
  return fmt::format(
      "\n{} of {}: {} priced from their Programs, {} estimated; {} skipped by a lower bound, {} over "
      "memory, {} over a limit, {} without a price, {} impossible; {}\n{}",
      counted(c.candidates, "layout"), counted(plan.request.offers.size(), "offer"), with_commas(c.computed),
      with_commas(c.composed), with_commas(c.left),
      with_commas(c.over_memory_by_bound + c.over_memory_composed + c.over_memory), with_commas(c.over_limit),
      with_commas(c.unpriced), with_commas(c.impossible), to_string(plan.searched), pipelines);
}

std::string proved_text(const HardwarePlan& plan, int width) {
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

// "1,000 steps"
std::string steps_words(const HardwarePlan& plan) {
  const std::string steps = counted(std::llround(plan.request.steps), "step");
  if (!plan.workload.train.time) return steps;
  return fmt::format("{}, as many as the choice does in train.time, {}", steps, to_string(*plan.workload.train.time));
}

}  // namespace

std::string price_text(const ClusterOffer& offer, const std::string& today) {
  if (!offer.offered.price) return "price unknown" + (offer.price.note.empty() ? "" : ": " + offer.price.note);
  return fmt::format("{} {} in {} (price of {})", to_string(*offer.offered.price), name_of(offer.price.provisioning),
                     offer.zone, age_text(offer.price.dated.date, today, kPriceIsOldAfter));
}

std::string million_tokens_text(const std::optional<Dollars>& dollars) {
  return dollars ? fmt::format("${:.3g}", dollars->count()) : "unknown";
}

std::string offered_plan_text(const HardwarePlan& plan, const PlanTextOptions& options) {
  const int width = options.width;
  std::string text =
      fmt::format("{}: {}, {}, {}; the stack is '{}'\n\n", plan.workload.name, counted(plan.parameters, "parameter"),
                  rows_words(plan), steps_words(plan), plan.rules.stack.name);
  if (plan.choice.chosen) text += chosen_text(plan, options) + options.feed;
  if (options.drawings) text += time_drawing(plan);
  text += proved_text(plan, width) + front_text(plan, width);
  if (options.drawings) text += front_drawing(plan);
  return text + lost_text(plan, options.all, width) + options.this_machine + sizes_text(plan, width) +
         sensitivities_text(plan, width) + counts_text(plan);
}

std::string explained_text(const HardwarePlan& plan, const LostOption* lost, const PlanTextOptions& options) {
  const Estimated &a = *plan.choice.chosen, &b = *lost->estimated;
  std::string text =
      fmt::format("{}: {}\n", options.bold(plan.request.offers[a.offer].offered.name), to_string(a.candidate));
  text += fmt::format("beside {}: {}\n{}{}\n\n", options.bold(plan.request.offers[b.offer].offered.name),
                      to_string(b.candidate), lost->reason,
                      edit_words(plan, *lost).empty() ? "" : "; would win with " + edit_words(plan, *lost));
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& what, double x, double y) {
    if (x < kLeastShown * a.step.seconds && y < kLeastShown * b.step.seconds) return;
    rows.push_back(
        {what, to_string(Seconds(x)), to_string(Seconds(y)), (y > x ? "+" : "") + to_string(Seconds(y - x))});
  };
  for (int s = 0; s < kNumStepShares; ++s) {
    const auto share = static_cast<StepShare>(s);
    add(words_of(share), a.step[share], b.step[share]);
  }
  add("step", a.step.seconds, b.step.seconds);
  text += table({"time of a step", "choice>", "option>", "difference>"}, rows);
  rows.clear();
  const auto signed_text = [](Bytes bytes) {
    return bytes < Bytes() ? "-" + to_string(Bytes(-bytes.count())) : to_string(bytes);
  };
  const auto add_memory = [&](const std::string& what, Bytes x, Bytes y) {
    rows.push_back({what, signed_text(x), signed_text(y), (y > x ? "+" : "") + signed_text(y - x)});
  };
  for (std::size_t i = 0; i < std::min(a.memory.terms.size(), b.memory.terms.size()); ++i)
    add_memory(a.memory.terms[i].first, a.memory.terms[i].second, b.memory.terms[i].second);
  add_memory("total", a.memory.total(), b.memory.total());
  return text + "\n" + table({"memory of a device", "choice>", "option>", "difference>"}, rows);
}

}  // namespace systole
