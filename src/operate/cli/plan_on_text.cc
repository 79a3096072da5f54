#include "operate/cli/plan_on_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "ground/base/counted.h"
#include "operate/cli/plan_drawings.h"
#include "operate/cli/plan_prove.h"
#include "operate/cli/prediction_error.h"
#include "operate/cli/printer.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "predict/plan/layout_edit.h"

namespace systole::cli {
namespace {

std::string dollars_text(const std::optional<Dollars>& dollars) { return dollars ? to_string(*dollars) : "unknown"; }

// A table whose last column is a bar of each share, as long as the width lets it be.
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

constexpr double kLeastShown = 0.0005;  // of a step; less is told as 0.0%

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

std::string price_text(const PlannedOffer& offer, const std::string& today) {
  if (!offer.offered.price) return "price unknown" + (offer.price.note.empty() ? "" : ": " + offer.price.note);
  return fmt::format("{} {} in {} (price of {})", to_string(*offer.offered.price), name_of(offer.price.provisioning),
                     offer.zone, age_text(offer.price.dated.date, today, kPriceIsOldAfter));
}

std::string batch_text(const OfferedPlan& plan, const Candidate& candidate) {
  const std::int64_t rows = local_rows(plan.workload.train.batch, candidate);
  const std::int64_t ranks = candidate.row_parts();
  return fmt::format("{} = {} of a microbatch x {} x {}", counted(rows * candidate.microbatches * ranks, "row"), rows,
                     counted(candidate.microbatches, "microbatch"), counted(ranks, "data rank"));
}

double tokens_a_step(const OfferedPlan& plan) {
  return static_cast<double>(plan.workload.train.batch * std::max<std::int64_t>(1, plan.context));
}

// What does without a pipeline.
std::string needs_text(const OfferedPlan& plan, const Estimated& e) {
  for (std::size_t i = 0; i < plan.choice.lost.size(); ++i) {
    const LostOption& lost = plan.choice.lost[i];
    if (lost.layout && lost.offer == e.offer && !lost.estimated->candidate.staged())
      return fmt::format("{}; option {} does without", kPipelineNeeds, i + 1);
  }
  return std::string(kPipelineNeeds) + "; no layout without one fits";
}

std::string chosen_text(const OfferedPlan& plan, const Printer& out) {
  const Estimated& e = *plan.choice.chosen;
  const PlannedOffer& offer = plan.request.offers[e.offer];
  const Bytes capacity = offer.offered.cluster.chip.capacity;
  std::string text = out.ink(Ink::bold, offer.offered.name) + "\n";
  const auto line = [&](const char* what, const std::string& words) {
    text += fmt::format("  {:<8}{}\n", what, words);
  };
  line("layout", to_string(e.candidate));
  const PredictionKind kind = prediction_kind(plan.workload, offer.offered);
  const KnownError *of_step = known_error_of(kind, "step_time"), *of_memory = known_error_of(kind, "memory");
  line("step", fmt::format("{}{}, {:.1f}% MFU, {:.4g} tokens/s", to_string(Seconds(e.step.seconds)),
                           plus_minus(of_step), 100 * e.utilisation, tokens_a_step(plan) / e.step.seconds));
  line("", known_error_words(kind, of_step));
  line("total", fmt::format("{} for {}", to_string(e.total), counted(std::llround(plan.request.steps), "step")));
  std::string cost = e.dollars ? to_string(*e.dollars) + " at " : "";
  cost += price_text(offer, plan.today);
  if (e.dollars)
    cost += fmt::format(", ${:.3g} for a million tokens",
                        e.dollars->count() / (tokens_a_step(plan) * plan.request.steps) * 1e6);
  line("cost", cost);
  const char* what = "quota";
  for (const std::string& limit : quota_lines(plan.quotas, std::string(gcp_region_of(offer.zone))))
    line(std::exchange(what, ""), limit);
  line("memory", fmt::format("{}{} of {}", to_string(e.memory.total()), plus_minus(of_memory), to_string(capacity)));
  line("", known_error_words(kind, of_memory));
  line("batch", batch_text(plan, e.candidate));
  const std::string sets = set_words(plan, e.candidate);
  line("written", sets.empty() ? "as the workload has it" : sets);
  if (e.candidate.staged()) line("needs", needs_text(plan, e));
  if (const ProductType type = offer.offered.kernels.products; type != ProductType::bf16 && type != ProductType::f32)
    line("", fmt::format("products in {} are the stack's doing: no key of the workload asks for them", name_of(type)));
  return text + "\n" + time_text(e.step, out.width()) + "\n" + memory_text(e.memory, capacity, out.width());
}

std::string lost_text(const OfferedPlan& plan, bool all, int width) {
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

std::string sizes_text(const OfferedPlan& plan, int width) {
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

std::string sensitivities_text(const OfferedPlan& plan, int width) {
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

std::string front_text(const OfferedPlan& plan, int width) {
  if (plan.request.wanted != Wanted::front) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Estimated& e : plan.choice.front)
    rows.push_back({plan.request.offers[e.offer].offered.name, to_string(e.candidate), to_string(e.total),
                    dollars_text(e.dollars), fmt::format("{:.1f}%", 100 * e.utilisation)});
  return "\n" + table({"nothing is both faster and cheaper than", "layout", "total>", "dollars>", "MFU>"}, rows, width);
}

std::string counts_text(const OfferedPlan& plan) {
  const SearchCounts& c = plan.choice.counts;
  const char* pipelines =
      c.without_pipelines
          ? "pipelines were not looked at: those of a model with several stacks of layers take minutes to price, and "
            "layouts without one fit\n"
          : "";
  return fmt::format(
      "\n{} of {}: {} priced from their Programs, {} estimated; {} skipped by a lower bound, {} over "
      "memory, {} over a limit, {} without a price, {} impossible; {}\n{}",
      counted(c.candidates, "layout"), counted(plan.request.offers.size(), "offer"), with_commas(c.computed),
      with_commas(c.composed), with_commas(c.left),
      with_commas(c.over_memory_by_bound + c.over_memory_composed + c.over_memory), with_commas(c.over_limit),
      with_commas(c.unpriced), with_commas(c.impossible), to_string(plan.searched), pipelines);
}

}  // namespace

const char* words_of(StepShare share) {
  switch (share) {
    case StepShare::products: return "products";
    case StepShare::attention: return "attention";
    case StepShare::movement: return "ops between";
    case StepShare::host: return "launches waited for";
    case StepShare::tensor: return "exposed: activations (model)";
    case StepShare::context: return "exposed: keys and values (context)";
    case StepShare::expert: return "exposed: tokens (expert)";
    case StepShare::parameters: return "exposed: parameters (fsdp)";
    case StepShare::gradients: return "exposed: gradients (data, fsdp)";
    case StepShare::handing_on: return "exposed: between stages (pipe)";
    case StepShare::bubble: return "bubble of the pipeline";
    case StepShare::update: return "update";
    case StepShare::fixed: return "once a step, and stragglers";
  }
  return "";
}

const char* share_colour(StepShare share) {
  // Work in blues, messages from orange to red, what is neither in greys.
  static constexpr const char* kColours[] = {"#0072B2", "#56B4E9", "#9ecbe8", "#cfe5f3", "#E69F00",
                                             "#f2c14e", "#F0E442", "#D55E00", "#b03a00", "#CC79A7",
                                             "#777777", "#009E73", "#bbbbbb"};
  static_assert(std::size(kColours) == kNumStepShares);
  return kColours[static_cast<std::size_t>(share)];
}

std::string option_name(const OfferedPlan& plan, const LostOption& lost) {
  const std::string& offer = plan.request.offers[lost.offer].offered.name;
  if (lost.refused && plan.request.offers.size() > 1)
    return fmt::format("{}, {}", offer, to_string(lost.estimated->candidate));
  return lost.layout || lost.refused ? to_string(lost.estimated->candidate) : offer;
}

std::string set_words(const OfferedPlan& plan, const Candidate& candidate) {
  std::string words;
  for (const std::string& set : layout_sets(plan.workload, workload_of(plan.workload, candidate)))
    words += (words.empty() ? "--set " : " --set ") + shell_word(set);
  return words;
}

std::string edit_words(const OfferedPlan& plan, const LostOption& lost) {
  return lost.layout ? set_words(plan, lost.estimated->candidate) : lost.edit;
}

// This machine beside the choice.
std::string here_text(const OfferedPlan& plan) {
  if (!plan.here) return "";
  const ThisMachine& here = *plan.here;
  std::string text = fmt::format("{}: ", here.name);
  const std::string memory = fmt::format("{} of {}", to_string(here.memory), to_string(here.limit));
  if (!here.fits()) return text + fmt::format("does not fit: {}\n", memory);
  text += here.step ? fmt::format("{} a step, {} for $0, {}", to_string(*here.step),
                                  to_string(*here.step * plan.request.steps), memory)
                    : fmt::format("a step of unknown length, for $0, {}", memory);
  if (here.step && plan.choice.chosen)
    text += fmt::format(", {:.3g} x as long as the choice", here.step->count() / plan.choice.chosen->step.seconds);
  if (here.step && !here.calibrated) text += "; its speed is estimated: systole calibrate measures it";
  return text + "\nnext: systole run " + words_of(plan.arguments) + " trains on it\n";
}

// "1,000 steps"
std::string steps_words(const OfferedPlan& plan) {
  const std::string steps = counted(std::llround(plan.request.steps), "step");
  if (!plan.workload.train.time) return steps;
  return fmt::format("{}, as many as the choice does in train.time, {}", steps, to_string(*plan.workload.train.time));
}

std::string offered_plan_text(const OfferedPlan& plan, bool all, const Printer& out) {
  std::string text = fmt::format("{}: {}, {} of {} a step, {}; the stack is '{}'\n\n", plan.workload.name,
                                 counted(plan.parameters, "parameter"), counted(plan.workload.train.batch, "row"),
                                 counted(plan.context, "token"), steps_words(plan), plan.rules.stack.name);
  if (plan.choice.chosen) text += chosen_text(plan, out);
  if (!out.quiet()) text += time_drawing(plan);
  text += proved_text(plan, out.width()) + front_text(plan, out.width());
  if (!out.quiet()) text += front_drawing(plan);
  return text + lost_text(plan, all, out.width()) + here_text(plan) + sizes_text(plan, out.width()) +
         sensitivities_text(plan, out.width()) + counts_text(plan);
}

Result<const LostOption*> lost_option(const OfferedPlan& plan, const std::string& words) {
  const std::vector<LostOption>& all = plan.choice.lost;
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(words.data(), words.data() + words.size(), number);
  const LostOption* found = nullptr;
  if (failed == std::errc() && end == words.data() + words.size()) {
    if (number >= 1 && number <= all.size()) found = &all[number - 1];
  } else {
    for (const LostOption& one : all)
      if (found == nullptr &&
          (option_name(plan, one).find(words) != std::string::npos || plan.request.offers[one.offer].target == words))
        found = &one;
  }
  if (found == nullptr)
    return error(ErrorKind::not_found, "--explain: no option that lost is '{}'", words)
        .hinted(all.empty() ? "nothing lost: there is one option"
                            : fmt::format("1 to {}, as the plan without --explain numbers them", all.size()));
  if (!plan.choice.chosen || !found->estimated)
    return error(ErrorKind::invalid, "--explain {}: {}", words,
                 found->estimated ? "nothing was chosen to hold it against" : "no layout of it fits: " + found->reason)
        .hinted("another option, or the plan without --explain");
  return found;
}

std::string explained_text(const OfferedPlan& plan, const LostOption* lost, const Printer& out) {
  const Estimated &a = *plan.choice.chosen, &b = *lost->estimated;
  std::string text =
      fmt::format("{}: {}\n", out.ink(Ink::bold, plan.request.offers[a.offer].offered.name), to_string(a.candidate));
  text += fmt::format("beside {}: {}\n{}{}\n\n", out.ink(Ink::bold, plan.request.offers[b.offer].offered.name),
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

std::optional<std::string> exposed_warning(const OfferedPlan& plan) {
  if (!plan.choice.chosen) return std::nullopt;
  const StepTime& step = plan.choice.chosen->step;
  const double share = exposed_share(step);
  if (share <= kMuchExposed) return std::nullopt;
  std::vector<StepShare> kinds(std::begin(kExposedShares), std::end(kExposedShares));
  std::ranges::stable_sort(kinds, std::greater(), [&](StepShare kind) { return step[kind]; });
  std::string by_axis;
  for (const StepShare kind : kinds) {
    if (step[kind] < 0.005 * step.seconds) continue;
    std::string_view words = words_of(kind);
    words.remove_prefix(std::string_view("exposed: ").size());
    by_axis += fmt::format("{}{} {:.0f}%", by_axis.empty() ? "" : ", ", words, 100 * step[kind] / step.seconds);
  }
  return fmt::format(
      "{:.0f}% of the step ({} of {}) waits for messages: {}; above {:.0f}% fewer chips or faster links pay",
      100 * share, to_string(Seconds(share * step.seconds)), to_string(Seconds(step.seconds)), by_axis,
      100 * kMuchExposed);
}

}  // namespace systole::cli
