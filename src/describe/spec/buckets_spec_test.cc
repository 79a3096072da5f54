// data.buckets: what it reads, writes and refuses.

#include <gtest/gtest.h>

#include "describe/spec/workload.h"

namespace systole {
namespace {

std::string job(const std::string& data, const std::string& model = "family: gpt, layers: 1, width: 16, heads: 2") {
  return "systole: 1\nname: buckets\nmodel: { " + model +
         ", context: 256 }\ntrain: { batch: 2, steps: 100, optimizer: { kind: sgd, rate: 1e-2 } }\n"
         "data: { tokenizer: { vocabulary: 300 }, train: { files: a.txt }, " +
         data + " }\n";
}

TEST(BucketsSpec, ReadsEdges) {
  const Workload w = read_workload(job("buckets: [64, 128]"), "job.yaml").value();
  ASSERT_TRUE(w.data.buckets.has_value());
  EXPECT_FALSE(w.data.buckets->automatic);
  EXPECT_EQ(w.data.buckets->edges, (std::vector<std::int64_t>{64, 128}));
  EXPECT_FALSE(w.data.packing) << "one piece a row";
  EXPECT_FALSE(read_workload(job("buckets: [64, 128], packing: null"), "job.yaml").value().data.packing)
      << "as if it were left out";
}

TEST(BucketsSpec, AutoHasDefaults) {
  const Workload usual = read_workload(job("buckets: auto"), "job.yaml").value();
  ASSERT_TRUE(usual.data.buckets.has_value() && usual.data.buckets->automatic);
  EXPECT_EQ(usual.data.buckets->waste, 0.05);
  EXPECT_EQ(usual.data.buckets->shapes, 8);
  const Workload own = read_workload(job("buckets: auto, waste: 2%, shapes: 3"), "job.yaml").value();
  EXPECT_EQ(own.data.buckets->waste, 0.02);
  EXPECT_EQ(own.data.buckets->shapes, 3);
}

TEST(BucketsSpec, WritesWhatItReads) {
  for (const std::string data : {"buckets: [64, 256]", "buckets: auto, waste: 2%", "buckets: auto, shapes: 3"}) {
    const std::string once = to_yaml(read_workload(job(data), "job.yaml").value());
    EXPECT_NE(once.find("buckets:"), std::string::npos) << once;
    EXPECT_EQ(to_yaml(read_workload(once, "again.yaml").value()), once);
  }
  const Workload without = read_workload(job("seed: 1"), "job.yaml").value();
  EXPECT_TRUE(without.data.packing && !without.data.buckets);
  EXPECT_EQ(to_yaml(without).find("buckets:"), std::string::npos);
}

TEST(BucketsSpec, RefusesWhatMakesNoSense) {
  const std::string t5 = "family: t5, layers: 1, width: 16, heads: 2, target_context: 32";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {job("buckets: [64, 64]"), "job.yaml:5:80: error: data.buckets: 64 comes after 64: the lengths must ascend"},
      {job("buckets: [128, 64]"), "64 comes after 128"},
      {job("buckets: [0, 64]"), "data.buckets: 0 is too low"},
      {job("buckets: []"), "expected auto, or a list of row lengths"},
      {job("buckets: none"), "expected auto, or a list of row lengths"},
      {job("buckets: aotu"), "expected auto, or a list of row lengths such as [64, 128, 256], found text 'aotu'"},
      {job("buckets: aotu"), "hint: did you mean 'auto'?"},
      {job("buckets: AUTO"), "hint: did you mean 'auto'?"},
      {job("buckets: 64"), "expected auto, or a list of row lengths"},
      {job("buckets: [64, 512]"), "data.buckets: rows of 512 for a model of context 256"},
      {job("buckets: auto, packing: true"), "data.packing fills rows with several documents"},
      {job("buckets: [64], waste: 2%"), "data.waste means nothing with data.buckets: a list"},
      {job("shapes: 2"), "data.shapes means nothing without data.buckets"},
      {job("buckets: auto, waste: 200%"), "200% is no fraction"},
      {job("buckets: auto, shapes: 0"), "data.shapes: 0 is too low"},
      {job("buckets: auto, mixture: { sources: { a: { files: a.txt } } }"),
       "data.buckets: the order of a mixture is by rows"},
      {job("buckets: auto", t5), "data.buckets: pairs have rows of two lengths"},
  };
  for (const auto& [text, message] : wrong) {
    const Result<Workload> read = read_workload(text, "job.yaml");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(to_string(read.error()).find(message), std::string::npos) << message << "\n" << to_string(read.error());
  }
}

}  // namespace
}  // namespace systole
