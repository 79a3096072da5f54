#include "operate/check/lint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace systole {
namespace {

Workload workload(const std::string& train, const std::string& rest = "checkpoint: { every: 10 }\n",
                  const std::string& held_out = ", held_out_rows: 8") {
  return read_workload(
             "systole: 1\nname: x\nmodel: { family: mlp, inputs: 4, outputs: 2 }\ndata: { kind: linear, rows: 64" +
                 held_out + " }\ntrain: { steps: 100, " + train + " }\n" + rest,
             "x.yaml")
      .value();
}

std::vector<std::string> rules(const Workload& w) {
  std::vector<std::string> names;
  for (const Lint& l : lint(w)) names.push_back(l.rule);
  return names;
}

using Rules = std::vector<std::string>;
constexpr const char* kSgd = "optimizer: { kind: sgd, rate: 0.1 }";

TEST(Lint, nothing_to_say) { EXPECT_EQ(rules(workload(std::string("batch: 8, ") + kSgd)), Rules{}); }

TEST(Lint, nothing_held_out) {
  EXPECT_EQ(rules(workload(std::string("batch: 8, ") + kSgd, "checkpoint: { every: 10 }\n", ", held_out_rows: 0")),
            Rules{"no_held_out"});
}

TEST(Lint, microbatches_that_leave_rows_empty) {
  const std::vector<Lint> found = lint(workload(std::string("batch: 8, microbatches: 3, ") + kSgd));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "ragged_microbatches");
  EXPECT_EQ(found[0].text, "8 rows in 3 microbatches of 3: 1 of 9 rows computed is empty, 11% of a step");
  EXPECT_EQ(found[0].hint, "train.batch: 9, or let train.microbatches divide train.batch");
}

std::string of_empty_rows(const std::string& train, const std::string& mesh = "") {
  const auto found = empty_rows(workload(train + ", " + kSgd, "checkpoint: { every: 10 }\n" + mesh));
  return found ? fmt::format("{}: {}; {}", found->key, found->text, found->hint) : "";
}

TEST(Lint, logical_shards_that_leave_rows_empty) {
  EXPECT_EQ(of_empty_rows("batch: 6, exact: true"),
            "train.logical_shards: 6 rows in 8 logical shards of 1: 2 of 8 rows computed are empty, 25% of a step; "
            "train.batch: 8, or train.logical_shards: 2, for at most as many workers");
  EXPECT_EQ(of_empty_rows("batch: 20, exact: true"),
            "train.logical_shards: 20 rows in 8 logical shards of 3: 4 of 24 rows computed are empty, 17% of a step; "
            "train.batch: 24, or train.logical_shards: 4, for at most as many workers");
  EXPECT_EQ(
      of_empty_rows("batch: 24, exact: true, microbatches: 16"),
      "train.logical_shards: 24 rows in 8 logical shards of 2 microbatches of 2: 8 of 32 rows computed are "
      "empty, 25% of a step; train.batch: 32, or train.microbatches: 1 and train.logical_shards: 8, for at most as "
      "many workers");
  // Every suggestion of the hint leaves no row empty.
  EXPECT_EQ(of_empty_rows("batch: 24, exact: true, microbatches: 1, logical_shards: 8"), "");
  EXPECT_NE(of_empty_rows("batch: 13, exact: true, microbatches: 8")
                .find("train.microbatches: 1 and "
                      "train.logical_shards: 1,"),
            std::string::npos);
  EXPECT_EQ(of_empty_rows("batch: 13, exact: true, logical_shards: 1, microbatches: 1"), "");
  EXPECT_NE(of_empty_rows("batch: 18, exact: true, microbatches: 2").find("or train.logical_shards: 2,"),
            std::string::npos);
  EXPECT_EQ(of_empty_rows("batch: 18, exact: true, logical_shards: 2, microbatches: 2"), "");
  EXPECT_EQ(of_empty_rows("batch: 16, exact: true"), "");
  EXPECT_EQ(of_empty_rows("batch: 16, exact: true", "mesh: { data: 4 }\n"), "");
}

TEST(Lint, a_mesh_that_leaves_rows_empty) {
  EXPECT_EQ(of_empty_rows("batch: 8", "mesh: { data: 3 }\n"),
            "train.batch: 8 rows in 3 devices of 3: 1 of 9 rows computed is empty, 11% of a step; train.batch: 9");
  EXPECT_EQ(of_empty_rows("batch: 9", "mesh: { data: 3 }\n"), "");
  EXPECT_EQ(of_empty_rows("batch: 8", "mesh: { model: 2 }\n"), "");
}

TEST(Lint, one_server_on_a_spot_machine) {
  const auto served = [](const std::string& replicas, const std::string& terms) {
    std::string text;
    for (const Lint& found : lint(read_workload("systole: 1\nname: x\nworkload: serve\nmodel: { preset: gpt2-124m }\n"
                                                "serve: { traffic: { rate: 1 }" +
                                                    replicas + " }\nresources: { provisioning: " + terms + " }\n",
                                                "x.yaml")
                                      .value()))
      text += found.rule + ": " + found.key + ": " + found.hint + "\n";
    return text;
  };
  EXPECT_EQ(served(", replicas: 1", "spot"),
            "one_on_spot: serve.replicas: serve.replicas: 2, or resources.provisioning: on-demand\n");
  EXPECT_EQ(served(", replicas: '1:6'", "spot"),
            "one_on_spot: serve.replicas: serve.replicas: 2:6, or resources.provisioning: on-demand\n");
  EXPECT_EQ(served(", replicas: 2", "spot"), "");
  EXPECT_EQ(served(", replicas: 1", "on-demand"), "");
  EXPECT_EQ(served("", "spot"), "") << "they are planned first";
}

// Texts on an accelerator: packed, one a row, pairs.
Workload of_texts(const std::string& family, const std::string& data, const std::string& resources) {
  return read_workload("systole: 1\nname: x\nmodel: { family: " + family +
                           ", layers: 1, width: 16, heads: 2, context: 64 }\ndata: { train: { files: a.jsonl }" + data +
                           " }\ntrain: { batch: 8, steps: 100, optimizer: { rate: 1e-3 } }\ncheckpoint: { every: 10 "
                           "}\n" +
                           resources,
                       "x.yaml")
      .value();
}

TEST(Lint, rows_of_padding_on_an_accelerator) {
  const std::string trained = ", tokenizer: { vocabulary: 300 }", tpu = "resources: { accelerators: v5e }\n";
  EXPECT_FALSE(padded_rows(of_texts("gpt", trained, tpu)));
  EXPECT_FALSE(padded_rows(of_texts("gpt", trained + ", packing: false", "")));
  const Workload padded = of_texts("gpt", trained + ", packing: false", tpu);
  EXPECT_EQ(padded_rows(padded)->rule, "padded_rows");
  EXPECT_EQ(padded_rows(padded)->key, "data.packing");
  EXPECT_EQ(padded_rows(padded)->hint, "data.packing: true, or data.buckets: auto");
  EXPECT_EQ(padded_rows(padded, false, MeasuredRows{.padding = 0.84375})->text,
            "one text in each row of 64 tokens: 84% of what an accelerator computes is padding");
  EXPECT_FALSE(padded_rows(padded, false, MeasuredRows{.padding = 0.09}));
  EXPECT_TRUE(padded_rows(of_texts("gpt", trained + ", packing: false", ""), true));
  const Workload bucketed = of_texts("gpt", trained + ", buckets: [16, 32]", tpu);
  EXPECT_FALSE(padded_rows(bucketed)) << "how much is padding is not known";
  EXPECT_EQ(padded_rows(bucketed, false, MeasuredRows{.padding = 0.2})->hint,
            "data.buckets: auto, or data.packing: true without buckets");

  const Workload pairs = of_texts("t5", trained, tpu);
  EXPECT_EQ(padded_rows(pairs)->rule, "padded_rows");
  const Lint found = *padded_rows(pairs, false, MeasuredRows{.padding = 0.6, .most = 21, .most_of_targets = 500});
  EXPECT_EQ(found.key, "model.context");
  EXPECT_EQ(found.hint, fmt::format("model.context: 24 and model.target_context: {} hold 99% of the inputs and targets",
                                    pairs.model.target_context()));
}

TEST(Lint, a_high_rate_without_clipping) {
  EXPECT_EQ(rules(workload("batch: 8, optimizer: { kind: adamw, rate: 0.1, clip: 0 }")), Rules{"high_rate"});
  EXPECT_EQ(rules(workload("batch: 8, optimizer: { kind: adamw, rate: 0.1, clip: 1 }")), Rules{});
}

TEST(Lint, rows_and_checkpoints_in_a_mounted_bucket) {
  const auto found = [](const std::string& folder, const std::string& mount) {
    const Workload w =
        read_workload(
            "systole: 1\nname: x\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\ndata: { train: "
            "{ files: "
            "a.txt }, folder: " +
                folder + ", tokenizer: { vocabulary: 300 } }\ntrain: { batch: 2, steps: 3, " + std::string(kSgd) +
                " }\nvolumes: { " + mount + ": { bucket: corpus } }\ncheckpoint: { every: 1, folder: /data/saved }\n",
            "x.yaml")
            .value();
    return rules(w);
  };
  EXPECT_EQ(found("/data/tokens", "/data"), (Rules{"rows_in_a_bucket", "checkpoints_in_a_mounted_bucket"}));
  EXPECT_EQ(found("/database", "/data"), Rules{"checkpoints_in_a_mounted_bucket"});
  EXPECT_EQ(found("/scratch/tokens", "/corpus"), Rules{});
}

TEST(Lint, rows_on_nfs_that_the_workload_names) {
  const auto found = [](const std::string& volume, const std::string& folder = "/data/tokens") {
    const Workload w =
        read_workload(
            "systole: 1\nname: x\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\ndata: { train: "
            "{ files: a.txt }, folder: " +
                folder + ", tokenizer: { vocabulary: 300 } }\ntrain: { batch: 2, steps: 3, " + std::string(kSgd) +
                " }\nvolumes: { /data: { " + volume + " } }\ncheckpoint: { every: 1 }\n",
            "x.yaml")
            .value();
    return rules(w);
  };
  EXPECT_EQ(found("nfs: \"10.0.0.2:/corpus\""), Rules{"rows_on_nfs"});
  EXPECT_EQ(found("filestore: basic-hdd, size: 1TiB"), Rules{"rows_on_nfs"});
  EXPECT_EQ(found("filestore: auto"), Rules{}) << "its size follows from the feed";
  EXPECT_EQ(found("nfs: \"10.0.0.2:/corpus\"", "/scratch/tokens"), Rules{});
}

TEST(Lint, objects_of_a_bucket_are_kept_and_read_in_parts) {
  const auto found = [](const std::string& files, const std::string& data, const std::string& rest) {
    const Workload w =
        read_workload(
            "systole: 1\nname: x\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\ndata: { train: "
            "{ files: '" +
                files + "' }, " + data + ", tokenizer: { vocabulary: 300 } }\ntrain: { batch: 2, steps: 3, " +
                std::string(kSgd) + " }\ncheckpoint: { every: 1 }\n" + rest,
            "x.yaml")
            .value();
    return rules(w);
  };
  const Rules kept, read_again = {"objects_without_a_cache"};
  const std::string shards = "gs://b/part-*.jsonl", in_pods = "claims: { /runs: runs }\n";
  EXPECT_EQ(found(shards, "folder: /data/tokens", in_pods), read_again);
  EXPECT_EQ(found(shards, "folder: /data/tokens", in_pods + "volumes: { /data: { local_ssd: true } }\n"), read_again);
  EXPECT_EQ(found(shards, "folder: /data/tokens", in_pods + "volumes: { /data: { filestore: zonal, size: 1TiB } }\n"),
            Rules{"rows_on_nfs"});
  EXPECT_EQ(found(shards, "folder: /data/tokens, cache: { folder: /runs/objects }", in_pods), kept);
  EXPECT_EQ(found(shards, "folder: /runs/tokens, cache: { folder: /tmp/objects }", in_pods), kept) << "built once";
  EXPECT_EQ(found("a-*.txt", "folder: /data/tokens", in_pods), kept) << "no objects";
  EXPECT_EQ(found(shards, "folder: /data/tokens", ""), kept) << "not in pods";
  EXPECT_EQ(found("s3://b/all.jsonl.zst", "folder: tokens", ""), Rules{"one_packed_object"});
  EXPECT_EQ(found("s3://b/part-*.jsonl.zst", "folder: tokens", ""), kept);
}

}  // namespace
}  // namespace systole
