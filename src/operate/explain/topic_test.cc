// Topics: each is found, begins with its term, and names existing keys and topics; answers use the facts.
#include "operate/explain/topic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "describe/spec/schema.h"

namespace systole {
namespace {

class Topics : public testing::Test {
 protected:
  TopicFacts facts() { return {.catalog = &catalog_, .tables = &tables_, .today = "2026-11-25"}; }
  TopicFacts facts(const Workload& workload) {
    TopicFacts all = facts();
    all.workload = &workload;
    all.workload_name = "job.yaml";
    if (workload.has_model()) all.parameters = 1'000'000;
    return all;
  }
  TopicAnswer answer(const char* name, const TopicFacts& facts) {
    const Topic* topic = find_topic(name);
    CHECK(topic != nullptr, "no topic {}", name);
    return answer_topic(*topic, facts).value();
  }

  Catalog catalog_ = Catalog::read(builtin_catalog_files()).value();
  CatalogTables tables_ = CatalogTables::read().value();
};

constexpr const char* kText = R"(systole: 1
name: small
model: { family: gpt, layers: 2, width: 64, heads: 2, context: 128 }
data: { train: { files: my.txt }, tokenizer: { vocabulary: 512 } }
train: { batch: 16, steps: 100, optimizer: { rate: 1e-3 } }
)";

Workload workload(const std::string& more = "") { return read_workload(kText + more, "job.yaml").value(); }

bool says(const std::vector<std::string>& lines, const std::string& part) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(part) != line.npos; });
}

TEST_F(Topics, name_keys_and_topics_that_there_are) {
  std::set<std::string> names;
  for (const Topic* topic : topics()) {
    SCOPED_TRACE(topic->name);
    EXPECT_EQ(find_topic(topic->name), topic);
    EXPECT_TRUE(names.insert(topic->name).second);
    for (const std::string& other : split_words(topic->also)) {
      EXPECT_EQ(find_topic(other), topic) << other;
      EXPECT_TRUE(names.insert(other).second) << other;
    }
    EXPECT_FALSE(split_words(topic->keys).empty()) << "each is about keys of a workload";
    for (const std::string& key : split_words(topic->keys))
      EXPECT_TRUE(schema().key(key) != nullptr || schema().section(key) != nullptr) << key;
    for (const std::string& other : split_words(topic->related)) {
      const Topic* related = find_topic(other);
      ASSERT_NE(related, nullptr) << other;
      EXPECT_EQ(other, related->name);
    }
    EXPECT_TRUE(std::string(topic->text).ends_with('.'));
  }
  EXPECT_EQ(find_topic("MFU"), find_topic("mfu"));
  EXPECT_EQ(find_topic("spot_vm"), find_topic("spot"));
  EXPECT_EQ(find_topic("nothing-of-it"), nullptr);
}

// Rates, prices and limits come from the catalog, not from these texts.
TEST_F(Topics, state_no_rate_price_or_size_in_their_texts) {
  for (const Topic* topic : topics())
    for (const char* unit : {"$", "FLOP/s", "KB", "MB", "GB", "TB", "iB", "bit/s", "/h"})
      EXPECT_EQ(std::string(topic->text).find(unit), std::string::npos) << topic->name << ": " << unit;
}

TEST_F(Topics, are_the_groups_the_questions_and_the_terms) {
  const auto count = [](auto holds) {
    return std::ranges::count_if(topics(), [&](const Topic* topic) { return holds(*topic); });
  };
  EXPECT_EQ(count([](const Topic& topic) { return topic.group == TopicGroup::feature; }), 8);
  EXPECT_GE(count([](const Topic& topic) { return topic.group == TopicGroup::question; }), 9);
  EXPECT_EQ(count([](const Topic& topic) { return topic.in_glossary; }), 17);
  const std::string list = topics_list(), page = glossary_reference();
  for (const Topic* topic : topics()) {
    EXPECT_NE(list.find(std::string("  ") + topic->name + " "), std::string::npos) << topic->name;
    EXPECT_NE(page.find(topic->title), std::string::npos) << topic->name;
  }
}

TEST_F(Topics, answer_without_a_workload_and_with_one) {
  const Workload text = workload();
  const Workload program = read_workload("systole: 1\nname: p\ncommand: [python3, t.py]\n", "job.yaml").value();
  for (const Topic* topic : topics()) {
    SCOPED_TRACE(topic->name);
    const TopicAnswer alone = answer_topic(*topic, facts()).value();
    EXPECT_TRUE(alone.workload.empty());
    const std::string general = topic_text(*topic, alone, facts());
    EXPECT_TRUE(general.starts_with(topic->title));
    for (const Workload* each : {&text, &program}) {
      const TopicAnswer of_workload = answer_topic(*topic, facts(*each)).value();
      EXPECT_GE(of_workload.workload.size(), split_words(topic->keys).size());
      EXPECT_NE(topic_text(*topic, of_workload, facts(*each)).find("in job.yaml\n"), std::string::npos);
    }
  }
}

TEST_F(Topics, answer_from_what_the_workload_says) {
  EXPECT_TRUE(says(answer("batch", facts(workload())).workload, "train.batch: 16"));
  EXPECT_TRUE(says(answer("batch", facts(workload())).workload, "tokens a step: 2,048"));
  EXPECT_TRUE(says(answer("fsdp", facts(workload())).workload, "no axis fsdp"));
  EXPECT_TRUE(says(answer("fsdp", facts(workload("mesh: { fsdp: 4 }\n"))).workload, "over the 4 devices"));
  EXPECT_TRUE(says(answer("exact", facts(workload())).workload, "is not exact"));
  EXPECT_TRUE(says(answer("checkpoint", facts(workload("checkpoint: { every: never }\n"))).workload, "loses all"));
  const std::vector<std::string> kept =
      answer("checkpoint", facts(workload("checkpoint: { every: 10, keep: 2, keep_every: 1000 }\n"))).workload;
  EXPECT_TRUE(says(kept, "with 2 checkpoints kept and one being written: up to " + to_string(Bytes(36'000'000))));
  EXPECT_TRUE(says(kept, "multiple of 1,000 is kept, too: " + to_string(Bytes(12'000'000)) + " more"));
  EXPECT_TRUE(says(answer("cost", facts(workload())).workload, "has no budget"));
}

TEST_F(Topics, name_the_targets_of_the_keys) {
  const Workload ssh = workload("ssh: { hosts: [a, b] }\n");
  TopicFacts all = facts(ssh);
  EXPECT_TRUE(says(answer("orchestration", all).workload, "name no cluster and no cloud"));
  all.targets = {"ssh"};
  EXPECT_TRUE(says(answer("orchestration", all).workload, "--on ssh"));
  EXPECT_FALSE(says(answer("orchestration", all).workload, "name no cluster"));
}

// 1,000,000 parameters of 4 bytes, with gradients and two moments: 16 MB, a quarter of it on each of four devices.
TEST_F(Topics, count_bytes_by_the_stage_of_sharding) {
  const auto each = [&](const std::string& stored) {
    return answer("fsdp", facts(workload("mesh: { fsdp: 4 }\nfully_sharded: " + stored + "\n"))).workload;
  };
  EXPECT_TRUE(says(each("parameters"), "each holds " + to_string(Bytes(4'000'000))));
  EXPECT_TRUE(says(each("gradients"), "each holds " + to_string(Bytes(7'000'000))));
  EXPECT_TRUE(says(each("state"), "each holds " + to_string(Bytes(10'000'000))));
  EXPECT_TRUE(says(each("nothing"), "each holds " + to_string(Bytes(16'000'000))));
}

TEST_F(Topics, answer_from_the_plan) {
  const Workload text = workload();
  TopicFacts all = facts(text);
  all.no_plan = "no device";
  EXPECT_TRUE(says(answer("mfu", all).workload, "no plan on this machine: no device"));
  PlanFacts plan{.machine = "here",
                 .calibrated = true,
                 .model_flops = Flops(6'000'000),
                 .executed_flops = Flops(9'000'000),
                 .step = Seconds(0.1),
                 .matmul_ratio = 0.61};
  plan.memory = {{"residuals", kMiB * 3}, {"parameters", kMiB}};
  plan.memory_total = kMiB * 4;
  plan.memory_limit = kMiB * 2;
  plan.time = {{"contraction", Seconds(0.06)}};
  all.plan = &plan;
  EXPECT_TRUE(says(answer("mfu", all).workload, "61% of the matmul rate of here, as measured"));
  EXPECT_TRUE(says(answer("recompute", all).workload, "executed FLOPs are 50% above"));
  EXPECT_TRUE(says(answer("memory", all).workload, "does not fit"));
  EXPECT_TRUE(says(answer("roofline", all).workload, "contraction: 60.0 ms, 60% of a step"));
}

TEST_F(Topics, state_prices_with_their_date) {
  for (const char* name : {"spot", "prices", "extra-fee", "cloud-storage", "storage"}) {
    const std::vector<std::string> lines = answer(name, facts()).catalog;
    EXPECT_TRUE(says(lines, "$")) << name;
    for (const std::string& line : lines)
      EXPECT_TRUE(line.find('$') == line.npos || line.find("(list ") != line.npos) << line;
  }
  TopicFacts later = facts();
  later.today = "2036-11-25";
  EXPECT_TRUE(says(answer("spot", later).catalog, " days old)"));
  EXPECT_TRUE(says(answer("gpu", later).catalog, " days old)"));
  const Workload h100 = workload("resources: { accelerators: a3-highgpu-8g:2, provisioning: spot }\n");
  EXPECT_TRUE(says(answer("spot", facts(h100)).catalog, "a3-highgpu-8g in "));
  EXPECT_TRUE(says(answer("mfu", facts(h100)).catalog, " dense in bf16 ("));
  EXPECT_TRUE(says(answer("gpu", facts(h100)).workload, "it names a3-highgpu-8g:2"));
  EXPECT_TRUE(says(answer("gpu", facts()).catalog, "h100: "));
  EXPECT_TRUE(says(answer("tpu", facts()).catalog, "v5e: "));
  EXPECT_FALSE(answer("quota", facts(h100)).catalog.empty());
  EXPECT_TRUE(says(answer("networking", facts(h100)).catalog, "a3-highgpu-8g: "));
}

}  // namespace
}  // namespace systole
