// The effect of a stack's choices (KernelChoice) on the parts of a step, against shapes computed by hand.

#include "predict/perf/step_parts.h"

#include <gtest/gtest.h>

#include "describe/job/job.h"

namespace systole {
namespace {

const Catalog& catalog() {
  static const Catalog known = Catalog::read(builtin_catalog_files()).value();
  return known;
}

// Llama 2 of 7 billion, tensor parallel on two H100, a row of 4,096 tokens per microbatch, layers recomputed.
struct Fixture {
  std::unique_ptr<const Program> program;
  Cluster cluster;
  PipelineStrategy pipeline;

  Fixture() {
    const Workload workload =
        read_workload(
            "systole: 1\nname: t\nmodel: { preset: llama2-7b }\ndata: { train: { files: a.txt }, tokenizer: { "
            "vocabulary: 300 } }\ntrain: { batch: 2, microbatches: 2, steps: 1, recompute: block, optimizer: { rate: "
            "1e-3 }, precision: { compute: bf16, reduce: bf16 } }\nmesh: { model: 2 }\n",
            "job.yaml")
            .value();
    Strategy strategy = strategy_of(workload);
    strategy.snapshot = false;
    program = std::move(make_job(workload, strategy, target_of_accelerators(), nullptr, 0).value().program);
    ClusterOptions options;
    options.devices = 2;
    cluster = cluster_of(*catalog().find("h100").value(), options).value();
    pipeline = strategy.pipeline;
  }

  // Backward of a layer.
  WorkParts backward(const KernelChoice& kernels) const {
    const Program* stages[] = {program.get()};
    const StepParts parts = step_parts(stages, pipeline, 2, cluster, kernels);
    for (const StretchParts& stretch : parts.chunks[0].backward)
      if (stretch.once.layers > 0) return stretch.once;
    ADD_FAILURE() << "no layers";
    return {};
  }
};
constexpr double kWidth = 4096, kMlp = 11008;

TEST(StepParts, a_block_that_is_done_again_is_done_to_its_end) {
  const Fixture f;
  KernelChoice to_its_end;
  to_its_end.whole_again = true;
  const WorkParts program = f.backward({}), whole = f.backward(to_its_end);
  // The product down to the width, with each rank's half of the terms, and its sum over both ranks.
  const ProductDims down{1, 4096, 4096, 11008 / 2};
  EXPECT_NEAR(whole.products - program.products, product_seconds(f.cluster.chip, down, ProductType::bf16), 1e-12);
  EXPECT_GT(whole.tensor.seconds, program.tensor.seconds);
  EXPECT_GT(whole.moved, program.moved);
  EXPECT_EQ(whole.attention, program.attention);
}

TEST(StepParts, sums_that_products_add_to_move_nothing_besides) {
  const Fixture f;
  KernelChoice fused;
  fused.sums_in_products = true;
  const WorkParts apart = f.backward({}), in_products = f.backward(fused);
  // For the half of each weight that a rank has: the gradient is read in f32, the sum read and written in bf16.
  const double bytes = 8 * (4 * kWidth * kWidth + 3 * kWidth * kMlp) / 2;
  const double bandwidth = f.cluster.chip.memory.count() * f.cluster.chip.memory_reached;
  EXPECT_NEAR((apart.moved - in_products.moved) * bandwidth, bytes, 1e-6 * bytes);
  EXPECT_EQ(apart.kernels - in_products.kernels, 7);  // q, k, v, o, gate, up, down
  EXPECT_EQ(apart.products, in_products.products);
}

// 16 ranks in two machines, 8 experts per token.
TEST(StepParts, a_token_goes_once_to_each_machine_where_dispatch_can) {
  ClusterOptions options;
  options.devices = 16;
  const Cluster cluster = cluster_of(*catalog().find("h100").value(), options).value();
  const GroupLinks links{16, 8, cluster.network};
  const auto sent = [&](std::int64_t once, double senders) {
    WorkParts parts;
    add_messages({CollectiveKind::all_to_all, CarriedKind::expert, 1e9, 1, once, senders}, links, cluster, parts);
    return parts.expert;
  };
  const double each = 1e9 / 2 / cluster.network.count();  // half of the experts are far
  EXPECT_NEAR(sent(0, 1).far_seconds, each, 1e-12);
  EXPECT_NEAR(sent(1, 1).far_seconds, each, 1e-12);
  EXPECT_NEAR(sent(8, 1).far_seconds, each / 4 * (1 - 1.0 / 256), 1e-12);  // once instead of four times
  EXPECT_NEAR(sent(0, 4).far_seconds, each / 4, 1e-12);                    // four ranks have it; each sends a part
  // A token that arrives once, and parts of it, are distributed over faster links.
  EXPECT_GT(sent(8, 1).seconds, sent(0, 1).seconds);
  EXPECT_GT(sent(0, 4).seconds, sent(0, 1).seconds);
}

// A ring of n - 1 permutes takes as long as a gather of the same data; each permute is one hop.
TEST(StepParts, permutes_send_what_they_are_given_to_one) {
  ClusterOptions options;
  options.devices = 16;
  const Cluster cluster = cluster_of(*catalog().find("h100").value(), options).value();
  for (const std::int64_t inside : {std::int64_t{8}, std::int64_t{4}}) {
    const GroupLinks links{8, inside, cluster.network};
    const auto sent = [&](CollectiveKind kind) {
      WorkParts parts;
      add_messages({kind, CarriedKind::context, 1e8, 1}, links, cluster, parts);
      return parts.context;
    };
    const MessageParts once = sent(CollectiveKind::collective_permute), all = sent(CollectiveKind::all_gather);
    EXPECT_NEAR(once.seconds * 7, all.seconds, 1e-12);
    EXPECT_NEAR(once.far_seconds * 7, all.far_seconds, 1e-12);
    EXPECT_EQ(once.far_hops * 7, all.far_hops);
    EXPECT_GT(once.seconds + once.far_seconds, 0);
  }
}

TEST(StepParts, experts_are_launched_one_by_one) {
  const Fixture f;
  StretchRecord stretch;
  stretch.in_layers = true;
  stretch.products = {{16, 256, 1024, 512}, {1, 256, 1024, 512}};
  KernelChoice small;
  small.products = ProductType::fp8;
  EXPECT_EQ(computed(stretch, f.cluster.chip, {}).kernels, 17);
  EXPECT_EQ(computed(stretch, f.cluster.chip, small).kernels, 3 * 17);  // both operands are quantised
}

}  // namespace
}  // namespace systole
