#include "predict/serving/serving_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "ground/tensor/int4.h"
#include "predict/plan/hardware_plan_text.h"

namespace systole {
namespace {

constexpr ServedPrecision kPrecisions[] = {{DType::f32, DType::f32},
                                           {DType::bf16, DType::f32},
                                           {DType::bf16, DType::bf16},
                                           {DType::i8, DType::f32},
                                           {kInt4, DType::f32}};
constexpr std::int64_t kMostSlots = 1024;

Workload workload_with(const Workload& asked, const ServedPrecision& precision, std::int64_t slots) {
  Workload workload = asked;
  workload.serve.parameter = precision.parameter;
  workload.serve.compute = precision.compute;
  if (precision.compute == DType::bf16) workload.serve.cache = DType::bf16;
  workload.serve.slots = slots;
  return workload;
}

std::string words_of(const ServedPrecision& precision) {
  std::string words(name_of_parameter(precision.parameter));
  if (precision.compute != DType::f32) words += fmt::format(", computing in {}", name_of(precision.compute));
  return words;
}

double tokens_of(const ServingRow& row) { return row.carries() ? row.capacity->outcome.tokens_per_second : 0; }

// Dollars for a token first, then most tokens.
bool better(const ServingCandidate& a, const ServingCandidate& b) {
  const auto rank = [](const ServingCandidate& one) {
    return std::pair(one.row.per_million ? one.row.per_million->count() : std::numeric_limits<double>::infinity(),
                     -tokens_of(one.row));
  };
  if (a.row.carries() != b.row.carries()) return a.row.carries();
  return rank(a) < rank(b);
}

// Plans a precision with more and more slots, until no device carries more.
Status search_slots(const Workload& asked, const std::vector<ArrivingRequest>& trace, const ServingAxes& axes,
                    const ServedPrecision& precision, const AddRows& add_rows, ServingSearch& search) {
  std::map<std::string, double> most;
  for (std::int64_t slots = asked.serve.slots; slots <= std::max(kMostSlots, asked.serve.slots); slots *= 2) {
    const Workload workload = workload_with(asked, precision, slots);
    ServingPlanner planner = TRY(ServingPlanner::create(workload, trace));
    TRY(add_rows(workload, planner));
    ServingPlan plan = planner.take();
    bool more = false;
    for (ServingRow& row : plan.rows) {
      double& so_far = most[row.name];
      more |= tokens_of(row) > 1.02 * so_far;
      so_far = std::max(so_far, tokens_of(row));
      search.candidates.push_back(
          {precision.parameter, precision.compute, workload.serve.cache, slots, std::move(row)});
    }
    for (const auto& left : plan.left_out)
      if (std::ranges::find(search.left_out, left) == search.left_out.end()) search.left_out.push_back(left);
    plan.rows.clear();
    if (search.asked.workload.name.empty()) search.asked = std::move(plan);
    if (!axes.slots || !more) break;
  }
  return {};
}

// Marks the best, and puts devices in order of their best.
void rank(std::vector<ServingCandidate>& candidates) {
  std::map<std::string, const ServingCandidate*> best;
  for (const ServingCandidate& one : candidates) {
    const ServingCandidate*& so_far = best[one.row.name];
    if (so_far == nullptr || better(one, *so_far)) so_far = &one;
  }
  std::vector<std::string> order;
  for (const auto& [device, one] : best) order.push_back(device);
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) { return better(*best[a], *best[b]); });
  for (ServingCandidate& one : candidates) {
    one.best_of_device = one.row.carries() && best[one.row.name] == &one;
    one.best = one.best_of_device && one.row.name == order.front();
  }
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::ranges::stable_sort(candidates, {}, [&](const ServingCandidate& one) { return place[one.row.name]; });
}

// Of each device and precision the best number of slots.
std::vector<const ServingCandidate*> shown(const std::vector<ServingCandidate>& candidates) {
  std::vector<const ServingCandidate*> result;
  for (const ServingCandidate& one : candidates) {
    const auto same = std::ranges::find_if(result, [&](const ServingCandidate* other) {
      return other->row.name == one.row.name && other->parameter == one.parameter && other->compute == one.compute;
    });
    if (same == result.end())
      result.push_back(&one);
    else if (better(one, **same))
      *same = &one;
  }
  return result;
}

}  // namespace

std::span<const ServedPrecision> served_precisions() { return kPrecisions; }

std::string ServingCandidate::sets(const ServeSpec& asked) const {
  std::vector<std::string> words;
  const auto set = [&](const char* key, const auto& value, const auto& given) {
    if (value != given) words.push_back(fmt::format("--set serve.{}={}", key, value));
  };
  set("parameter", name_of_parameter(parameter), name_of_parameter(asked.parameter));
  set("compute", name_of(compute), name_of(asked.compute));
  set("cache", name_of(cache), name_of(asked.cache));
  set("slots", slots, asked.slots);
  return fmt::format("{}", fmt::join(words, " "));
}

Result<ServingSearch> search_serving(const Workload& workload, const std::vector<ArrivingRequest>& trace,
                                     const ServingAxes& axes, const AddRows& add_rows) {
  const ServedPrecision given[] = {{workload.serve.parameter, workload.serve.compute}};
  ServingSearch search;
  std::optional<Error> first;
  for (const ServedPrecision& precision :
       axes.precision ? served_precisions() : std::span<const ServedPrecision>(given)) {
    const std::size_t before = search.candidates.size();
    const Status found = search_slots(workload, trace, axes, precision, add_rows, search);
    if (found.ok()) continue;
    if (!first) first = found.error();
    std::string what = words_of(precision);
    if (search.candidates.size() > before) what += fmt::format(", more than {} slots", search.candidates.back().slots);
    search.left_out.emplace_back(std::move(what), found.error().message);
  }
  if (search.candidates.empty()) return first ? *first : error(ErrorKind::not_found, "nothing to serve on");
  rank(search.candidates);
  search.asked.workload = workload;  // not the first candidate's
  return search;
}

std::string serving_search_text(const ServingSearch& search, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const ServingCandidate* one : shown(search.candidates)) {
    const ServingRow& row = one->row;
    const bool carries = row.carries();
    rows.push_back({one->best             ? "**"
                    : one->best_of_device ? "*"
                                          : "",
                    row.name, words_of({one->parameter, one->compute}), with_commas(one->slots),
                    carries ? search.asked.words_of_load(row.capacity->load) : "-",
                    carries ? rate_text(tokens_of(row)) : "-", carries ? million_tokens_text(row.per_million) : "-",
                    carries ? "" : row.lost});
  }
  const char* carrier = search.asked.options.parts > 1 ? "a replica carries>" : "a device carries>";
  return table({"", "offer", "parameters", "slots>", carrier, "tokens/s>", "$/1M tokens>", "why nothing"}, rows,
               width) +
         "\n* the best of the offer, ** of all: the fewest dollars for a token, then the most tokens\n"
         "what a precision costs in quality is not in this table: systole quantize measures it of int8 and int4, on "
         "text\n";
}

Node serving_search_node(const ServingSearch& search) {
  Node all = Node::sequence(), left_out = Node::sequence();
  for (const ServingCandidate& one : search.candidates) {
    const ServingRow& row = one.row;
    const bool carries = row.carries();
    all.push(Node::map({{"offer", row.name},
                        {"parameter", name_of_parameter(one.parameter)},
                        {"compute", name_of(one.compute)},
                        {"cache", name_of(one.cache)},
                        {"slots", one.slots},
                        {"fits", row.memory.fits()},
                        {"most_load", carries ? Node(row.capacity->load) : Node()},
                        {"tokens_per_second", carries ? Node(tokens_of(row)) : Node()},
                        {"dollars_per_million_tokens", row.per_million ? Node(row.per_million->count()) : Node()},
                        {"best_of_offer", one.best_of_device},
                        {"best", one.best},
                        {"lost", row.lost.empty() ? Node() : Node(row.lost)}}));
  }
  for (const auto& [what, why] : search.left_out) left_out.push(Node::map({{"what", what}, {"why", why}}));
  return Node::map({{"serving_search", Node::map({{"workload", to_node(search.asked.workload)},
                                                  {"candidates", std::move(all)},
                                                  {"left_out", std::move(left_out)}})}});
}

}  // namespace systole
