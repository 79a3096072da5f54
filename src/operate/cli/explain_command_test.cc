// `systole explain`: keys, topics, and answers about a given workload.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/plan_job.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"
#include "operate/explain/topic.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

class Explain : public testing::Test {
 protected:
  Explain() { systole_.write("job.yaml", kWorkload); }
  std::string told(std::vector<std::string> words) const {
    words.insert(words.begin(), "explain");
    const Captured done = systole_.run(words);
    EXPECT_EQ(done.exit.code, 0) << done.err;
    return done.out;
  }

  SystoleRunner systole_;
};

TEST_F(Explain, lists_topics_and_answers_each) {
  const std::string list = told({"topics"});
  for (const Topic* topic : topics()) EXPECT_TRUE(has(list, std::string("  ") + topic->name + " ")) << topic->name;
  for (const char* name : {"mfu", "fsdp", "spot", "checkpoint", "exact", "recompute", "single-api", "cmek"}) {
    const std::string general = told({name}), of_job = told({name, "job.yaml"});
    EXPECT_TRUE(general.starts_with(find_topic(name)->title)) << general;
    EXPECT_FALSE(has(general, "in job.yaml")) << general;
    EXPECT_TRUE(has(of_job, "in job.yaml\n")) << of_job;
  }
}

TEST_F(Explain, answers_from_the_workload_as_it_is_laid_over) {
  EXPECT_TRUE(has(told({"batch", "job.yaml"}), "train.batch: 8"));
  EXPECT_TRUE(has(told({"batch", "job.yaml", "--set", "train.batch=32"}), "train.batch: 32"));
  EXPECT_TRUE(has(told({"train.batch", "job.yaml"}), "in job.yaml: 8\n"));
  EXPECT_TRUE(has(told({"recompute"}), "train.recompute")) << "a word that is a key too has both texts";
}

TEST_F(Explain, names_the_targets_of_its_keys) {
  EXPECT_TRUE(has(told({"orchestration", "job.yaml"}), "name no cluster and no cloud"));
  for (const auto& [key, target] : std::vector<std::pair<std::string, std::string>>{
           {"kubernetes: { namespace: ml }\n", "kubernetes"},
           {"slurm: { qos: high }\n", "slurm"},
           {"gcloud: { create: instances, name: a, zone: us-central1-a, machine: g2-standard-4 }\n", "gcloud"}}) {
    systole_.write("on.yaml", kWorkload + key);
    EXPECT_TRUE(has(told({"orchestration", "on.yaml"}), "--on " + target)) << key;
  }
}

// A frozen parameter has neither a gradient nor moments.
TEST_F(Explain, counts_no_state_of_frozen_parameters) {
  systole_.write("job.yaml", kTinyPlanJob);
  const std::string adapters = "model.adapters.rank=1";
  const Bytes parameters(38'048 * 4), trained(1'024 * 4);
  const std::string fsdp = told({"fsdp", "job.yaml", "--set", adapters});
  EXPECT_TRUE(has(fsdp, fmt::format("parameters {}, gradients {} of those trained, 2 moments of adamw: {} in all",
                                    to_string(parameters), to_string(trained), to_string(parameters + trained * 3))))
      << fsdp;
  const std::string saved = told({"checkpoint", "job.yaml", "--set", adapters});
  EXPECT_TRUE(has(saved, "the optimizer's moments: " + to_string(parameters + trained * 2) + " before")) << saved;
}

TEST_F(Explain, is_a_document_with_json) {
  const Captured done = systole_.run({"explain", "spot", "job.yaml", "--json"});
  ASSERT_EQ(done.exit.code, 0) << done.err;
  const Node document = parse_json(done.out, "out").value();
  EXPECT_EQ(document.get("topic").value()->text(), "spot");
  for (const char* key : {"title", "text", "keys", "workload", "catalog"})
    EXPECT_NE(document.find(key), nullptr) << key;
  EXPECT_FALSE(document.get("workload").value()->items().empty());
}

TEST_F(Explain, names_the_nearest_of_what_there_is_not) {
  for (const auto& [word, near] : std::vector<std::pair<std::string, std::string>>{
           {"chekpoint", "'checkpoint'"}, {"egres", "'egress'"}, {"train.btach", "'train.batch'"}}) {
    const Captured refused = systole_.run({"explain", word});
    EXPECT_EQ(refused.exit.code, 2);
    EXPECT_TRUE(has(refused.err, "did you mean ") && has(refused.err, near)) << refused.err;
  }
  const Captured nothing = systole_.run({"explain", "%"});
  EXPECT_TRUE(has(nothing.err, "systole explain topics")) << nothing.err;
  EXPECT_EQ(systole_.run({"explain", "mfu", "none.yaml"}).exit.code, 2);
}

}  // namespace
}  // namespace systole::cli
