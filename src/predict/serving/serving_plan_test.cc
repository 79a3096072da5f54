// Plans of serving on offers of the catalog: their order, prices and reasons, and what is refused.

#include "predict/serving/serving_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "predict/serving/serving_plan_text.h"

namespace systole {
namespace {

constexpr const char* kChat = R"(systole: 1
name: chat
workload: serve
model: { family: llama, layers: 8, width: 1024, heads: 16, kv_heads: 4, context: 2048, vocabulary: 32000 }
serve:
  slots: 8
  context: 1024
  objective: { ttft: 500ms, tpot: 50ms }
  traffic: { rate: 40, requests: 600, prompt: { mean: 200, distribution: lognormal }, answer: 60 }
)";

Result<ServingPlan> try_plan(const std::vector<std::string>& targets, const std::vector<std::string>& sets = {},
                             const std::string& chat = kChat) {
  const Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  CatalogTables tables = CatalogTables::read().value();
  const Workload workload = read_workload(chat, "job.yaml", {"", sets}).value();
  ServingPlanner planner = ServingPlanner::create(workload, {}).value();
  OfferRules rules;
  rules.stack = stack_of(builtin_stacks(), "");
  rules.products = {ProductType::f32};
  TRY(planner.add_offers(tables, catalog, targets, rules, "2026-08-01"));
  return planner.take();
}

ServingPlan planned(const std::vector<std::string>& targets, const std::vector<std::string>& sets = {}) {
  return try_plan(targets, sets).value();
}

// Few tokens a step need many steps for a prompt; by time, a step of an accelerator has hundreds.
TEST(ServingPlan, prompts_are_computed_by_time_or_in_pieces_that_are_given) {
  const ServingPlan by_time = planned({"l4:1"}), least = planned({"l4:1"}, {"serve.prefill_tokens=16"});
  ASSERT_TRUE(by_time.rows.front().carries()) << by_time.rows.front().lost;
  ASSERT_TRUE(least.rows.front().capacity);
  EXPECT_GT(by_time.rows.front().capacity->load, least.rows.front().capacity->load);
}

// Nobody asked for a time of further tokens: steps are within 50 ms. Then for one that is longer.
TEST(ServingPlan, pieces_keep_to_the_time_that_a_token_may_take) {
  std::string chat = kChat;
  chat.replace(chat.find(", tpot: 50ms"), std::string(", tpot: 50ms").size(), "");
  const ServingPlan usual = try_plan({"l4:1"}, {"model.layers=48", "serve.traffic.requests=200"}, chat).value();
  const ServingPlan longer =
      try_plan({"l4:1"}, {"model.layers=48", "serve.traffic.requests=200", "serve.objective.tpot=1s"}, chat).value();
  ASSERT_TRUE(usual.rows.front().carries()) << usual.rows.front().lost;
  EXPECT_GT(longer.rows.front().capacity->load, usual.rows.front().capacity->load);
}

// What is hinted for parameters larger than a device works: the least part that fits, or other accelerators.
TEST(ServingPlan, a_model_larger_than_a_device_is_hinted_to_several) {
  const std::vector<std::string> large{"model.layers=80", "model.width=8192",     "model.heads=64",  "model.kv_heads=8",
                                       "model.mlp=28672", "serve.parameter=bf16", "serve.cache=bf16"};
  EXPECT_TRUE(refusal_of(planned({"a3-highgpu-8g:1"}, large)).hint.starts_with("--set mesh.model=2, "));
  EXPECT_EQ(refusal_of(planned({"v5e:2x4"}, large)).hint, "--on accelerators with more memory")
      << "its 8 heads of keys and values are on 8 devices at most";
}

// With a mesh, as many devices of an offer as it has hold a replica together.
TEST(ServingPlan, devices_hold_a_replica_together) {
  const std::vector<std::string> large{"model.width=4096", "model.heads=32", "model.kv_heads=8", "serve.traffic.rate=2",
                                       "serve.traffic.requests=200"};
  std::vector<std::string> on_four = large;
  on_four.push_back("mesh={model: 4}");
  const ServingPlan alone = planned({"a3-highgpu-8g:1"}, large);
  const ServingPlan cut = planned({"a3-highgpu-8g:1,l4:1"}, on_four);
  ASSERT_EQ(cut.rows.size(), 1U);
  ASSERT_FALSE(cut.left_out.empty());  // of each size
  EXPECT_NE(cut.left_out[0].second.find("1 device holds no whole replica of 4"), std::string::npos)
      << cut.left_out[0].second;
  const ServingRow &one = alone.rows.front(), &four = cut.rows.front();
  ASSERT_TRUE(four.carries()) << four.lost;
  EXPECT_EQ(four.parts, 4);
  EXPECT_EQ(four.memory.cache * 4.0, one.memory.cache);
  EXPECT_LT(four.memory.parameters, one.memory.parameters * 0.27);  // norms are whole
  const Seconds whole = one.priced.times.decode.back().second, part = four.priced.times.decode.back().second;
  EXPECT_LT(part, whole);
  EXPECT_GT(part, whole * 0.25);  // messages take their time
  const double tokens = four.capacity->outcome.tokens_per_second * static_cast<double>(four.devices) / 4;
  EXPECT_NEAR(four.per_million->count(), four.price->count() / 3600 / tokens * 1e6, 1e-9);
  const auto refused = read_workload(kChat, "job.yaml", {"", {"mesh={data: 2}"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("along the axis 'model' alone"), std::string::npos) << refused.error().message;
}

TEST(ServingPlan, the_cheapest_token_comes_first_and_the_others_say_by_how_much) {
  const ServingPlan plan = planned({"a3-highgpu-8g:1,l4:1,v5e:1"});
  ASSERT_GE(plan.rows.size(), 3U);
  EXPECT_EQ(plan.rows.front().lost, "");
  for (const ServingRow& row : plan.rows) {
    ASSERT_TRUE(row.carries()) << row.name << row.lost;
    EXPECT_GE(static_cast<double>(row.replicas) * row.capacity->load, plan.asked * 0.999) << row.name;
    EXPECT_LT(static_cast<double>(row.replicas - 1) * row.capacity->load, plan.asked) << row.name;
    EXPECT_LE(row.capacity->outcome.ttft_p95.value, 0.5);
    EXPECT_LE(row.capacity->outcome.tpot_p95.value, 0.05);
    ASSERT_TRUE(row.per_million) << row.name;
    EXPECT_NEAR(
        row.per_million->count(),
        row.price->count() / 3600 / (static_cast<double>(row.devices) * row.capacity->outcome.tokens_per_second) * 1e6,
        1e-9);
    EXPECT_GE(*row.per_million, *plan.rows.front().per_million);
    EXPECT_EQ(row.lost.find("dearer a token") != std::string::npos, &row != &plan.rows.front()) << row.lost;
  }
}

TEST(ServingPlan, what_does_not_fit_says_so_and_comes_last) {
  // Keys and values of 8 layers, 4 heads of 64 and 8 sequences: 32 GiB.
  const ServingPlan plan = planned(
      {"l4:1,h100:1"}, {"model.context=262144", "serve.context=262144", "serve.slots=8", "serve.traffic.rate=1"});
  EXPECT_EQ(plan.rows.front().offer->accelerator, "h100");
  const ServingRow& last = plan.rows.back();
  EXPECT_EQ(last.offer->accelerator, "l4");
  EXPECT_TRUE(last.lost.starts_with("does not fit: ")) << last.lost;
  EXPECT_FALSE(last.capacity);
  const std::string text = serving_plan_text(plan, 120, [](std::string_view words) { return std::string(words); });
  for (const char* words : {"fits", "keys and values", "95% within", "for a million answer tokens", "does not fit"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST(ServingPlan, of_anything_each_accelerator_has_one_row) {
  const ServingPlan plan = planned({"any"}, {"serve.traffic.requests=100"});
  std::set<std::string> accelerators;
  for (const ServingRow& row : plan.rows) EXPECT_TRUE(accelerators.insert(row.offer->accelerator).second) << row.name;
  EXPECT_GT(accelerators.size(), 8U);
  EXPECT_EQ(plan.rows.front().lost, "");
  for (const ServingRow& row : plan.rows) {
    if (row.offer->accelerator != "v5e") continue;
    EXPECT_EQ(row.devices, 1) << "not a slice of 256";
  }
}

TEST(ServingPlan, weights_in_int8_take_less_memory_and_time) {
  const ServingPlan stored = planned({"l4:1"}), int8 = planned({"l4:1"}, {"serve.parameter=i8"});
  const ServingRow &wide = stored.rows.front(), &narrow = int8.rows.front();
  EXPECT_LT(narrow.memory.parameters * 2, wide.memory.parameters);
  EXPECT_LT(narrow.priced.times.decode_of(8), wide.priced.times.decode_of(8));
  EXPECT_GT(narrow.capacity->load, wide.capacity->load);
}

TEST(ServingPlan, keys_and_values_in_bf16_are_the_way_out_where_they_alone_do_not_fit) {
  // In f32 32 GiB of keys and values, in bf16 16 of the 24 GB.
  const std::vector<std::string> sets = {"model.context=262144", "serve.context=262144", "serve.slots=8",
                                         "serve.traffic.rate=1", "serve.traffic.requests=100"};
  const ServingPlan wide = planned({"l4:1"}, sets);
  ASSERT_FALSE(wide.rows.front().memory.fits());
  EXPECT_NE(refusal_of(wide).hint.find("--set serve.cache=bf16"), std::string::npos) << refusal_of(wide).hint;
  std::vector<std::string> halved = sets;
  halved.push_back("serve.cache=bf16");
  const ServingPlan narrow = planned({"l4:1"}, halved);
  EXPECT_TRUE(narrow.rows.front().memory.fits()) << narrow.rows.front().lost;
  EXPECT_EQ(narrow.rows.front().memory.cache * 2, wide.rows.front().memory.cache);
  const std::string text = serving_plan_text(narrow, 120, [](std::string_view words) { return std::string(words); });
  EXPECT_NE(text.find(" keys and values in bf16 ("), std::string::npos) << text;
}

TEST(ServingPlan, an_unknown_price_stays_unknown_behind_those_that_are_known) {
  const ServingPlan plan = planned({"h100:1,v5e:1"});  // one H100 alone is not had on demand
  const ServingRow& last = plan.rows.back();
  ASSERT_EQ(last.offer->accelerator, "h100");
  EXPECT_TRUE(last.carries());
  EXPECT_FALSE(last.per_million);
  EXPECT_EQ(last.lost, "its price is unknown");
}

TEST(ServingPlan, an_objective_that_no_device_meets_is_refused_with_its_own_time) {
  const ServingPlan plan = planned({"l4:1"}, {"serve.objective.tpot=1us"});
  EXPECT_FALSE(plan.rows.front().carries());
  const Error refused = refusal_of(plan);
  EXPECT_EQ(refused.kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.message.find("even alone (tpot"), std::string::npos) << refused.message;
  EXPECT_NE(refused.hint, "");
}

TEST(ServingPlan, users_are_planned_whole) {
  const ServingPlan plan =
      planned({"h100:1"}, {"serve.traffic.users=500", "serve.traffic.pause=10s", "serve.objective.ttft=300ms"});
  const ServingRow& row = plan.rows.front();
  ASSERT_TRUE(row.carries()) << row.lost;
  EXPECT_EQ(row.capacity->load, std::floor(row.capacity->load));
  EXPECT_EQ(plan.words_of_load(2), "2 users");
}

TEST(ServingPlan, its_document_has_the_same_numbers) {
  const ServingPlan plan = planned({"l4:1"});
  const Node document = serving_plan_node(plan);
  const Node& row = document.find("serving")->find("rows")->items()[0];
  EXPECT_EQ(row.find("replicas")->as_int().value(), plan.rows[0].replicas);
  EXPECT_EQ(row.find("dollars_per_million_tokens")->as_double().value(), plan.rows[0].per_million->count());
  const Node* ttft = row.find("at_most_load")->find("ttft_p95_seconds");
  EXPECT_LE(ttft->find("interval_95")->items()[0].as_double().value(), ttft->find("value")->as_double().value());
  EXPECT_TRUE(row.find("load_seconds")->is_null()) << "no rate of a disk is known";
  EXPECT_TRUE(row.find("start")->is_null());
}

TEST(ServingPlan, names_the_phases_of_a_start_as_the_server_does) {
  ServingPlan plan = planned({"l4:1"});
  plan.rows[0].disk = BytesPerSecond(1e9);
  const Node document = serving_plan_node(plan);
  const Node& start = *document.find("serving")->find("rows")->items()[0].find("start");
  EXPECT_EQ(start.find("weights_s")->as_double().value(),
            (plan.rows[0].memory.parameters / *plan.rows[0].disk).count());
  EXPECT_EQ(start.find("first_token_s")->as_double().value(), plan.first_token(plan.rows[0]).count());
  EXPECT_GT(plan.first_token(plan.rows[0]).count(), 0);
}

TEST(ServingPlan, a_model_that_serves_nothing_is_refused) {
  const Result<ServingPlan> plan = try_plan({"h100:1"}, {"model.moe={ experts: 4, every: 2, dense_mlp: 2048 }"});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace systole
