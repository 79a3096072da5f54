// Searches of serving: what is tried, where slots end, what is marked.

#include "predict/serving/serving_search.h"

#include <gtest/gtest.h>

#include <set>

namespace systole {
namespace {

constexpr const char* kChat = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 8, width: 1024, heads: 16, kv_heads: 4, context: 2048, vocabulary: 32000 }
serve:
  slots: 4
  context: 1024
  objective: { ttft: 500ms, tpot: 50ms }
  traffic: { rate: 40, requests: 100, prompt: { mean: 200, distribution: lognormal }, answer: 60 }
)";

Result<ServingSearch> searched(const std::string& on, const ServingAxes& axes,
                               const std::vector<std::string>& sets = {}) {
  const Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  CatalogTables tables = CatalogTables::read().value();
  const Workload workload = read_workload(kChat, "job.yaml", {"", sets}).value();
  return search_serving(workload, {}, axes, [&](const Workload& one, ServingPlanner& planner) {
    OfferRules rules;
    rules.stack = stack_of(builtin_stacks(), "");
    rules.products = {product_type(one.serve)};
    return planner.add_offers(tables, catalog, std::span(&on, 1), rules, "2026-08-01");
  });
}

TEST(ServingSearch, tries_each_precision_and_doubles_slots_while_they_help) {
  const ServingSearch search = searched("l4:1", {.precision = true, .slots = true}).value();
  std::set<std::pair<DType, DType>> precisions;
  std::set<std::string> devices, marked;
  int best = 0;
  double most = 0, best_tokens = 0;
  std::int64_t last = 0;
  const std::string& first = search.candidates.front().row.name;
  for (const ServingCandidate& one : search.candidates) {
    devices.insert(one.row.name);
    if (one.best_of_device) { EXPECT_TRUE(marked.insert(one.row.name).second) << one.row.name; }
    best += one.best ? 1 : 0;
    if (one.row.name != first) continue;
    if (!precisions.emplace(one.parameter, one.compute).second) {
      EXPECT_EQ(one.slots, 2 * last);
    } else {
      EXPECT_EQ(one.slots, 4);
    }
    last = one.slots;
    if (!one.row.carries()) continue;
    most = std::max(most, one.row.capacity->outcome.tokens_per_second);
    if (one.best) best_tokens = one.row.capacity->outcome.tokens_per_second;
    EXPECT_TRUE(one.compute == DType::f32 || one.cache == DType::bf16);
  }
  EXPECT_EQ(precisions.size(), served_precisions().size());
  EXPECT_GT(search.candidates.size(), 2 * precisions.size());
  EXPECT_EQ(best, 1);
  EXPECT_EQ(marked, devices);
  EXPECT_EQ(best_tokens, most) << "of one price, most tokens are the cheapest";
  const std::string text = serving_search_text(search, 120);
  EXPECT_NE(text.find("bf16, computing in bf16"), std::string::npos) << text;
  EXPECT_NE(text.find("\n** "), std::string::npos) << text;
}

TEST(ServingSearch, without_axes_it_is_the_workload) {
  const ServingSearch search = searched("l4:1,v5e:1", {}, {"serve.parameter=i8"}).value();
  std::set<std::string> offers;
  for (const ServingCandidate& one : search.candidates) {
    EXPECT_TRUE(offers.insert(one.row.name).second) << one.row.name;
    EXPECT_EQ(one.parameter, DType::i8);
    EXPECT_EQ(one.sets(search.asked.workload.serve), "");
  }
  EXPECT_TRUE(search.candidates[0].best);
}

// Computing in bf16: half the bytes of parameters and cache, on tensor cores.
TEST(ServingSearch, computing_in_bf16_is_faster) {
  const ServingSearch search = searched("h100:1", {.precision = true}).value();
  const auto tokens = [&](DType parameter, DType compute) {
    for (const ServingCandidate& one : search.candidates)
      if (one.parameter == parameter && one.compute == compute) return one.row.priced.times.decode_of(4).count();
    return 0.0;
  };
  EXPECT_LT(tokens(DType::bf16, DType::bf16), 0.75 * tokens(DType::f32, DType::f32));
  EXPECT_FALSE(read_workload(kChat, "job.yaml", {"", {"serve.compute=bf16"}}).ok()) << "keys and values are in f32";
}

}  // namespace
}  // namespace systole
