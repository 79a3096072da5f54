// Rows with layouts computed by hand.

#include "predict/backtest/row_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "predict/backtest/row_words.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

RowJob job_of(const Cells& cells) {
  const PublishedRow row = row_with(cells);
  return row_job(row, stack_of(builtin_stacks(), row.framework), builtin_catalog()).value();
}
std::string refusal_of(const Cells& cells) {
  const PublishedRow row = row_with(cells);
  const auto job = row_job(row, stack_of(builtin_stacks(), row.framework), builtin_catalog());
  return job.ok() ? "no refusal" : job.error().message;
}

std::string mesh_of(const RowJob& job) {
  std::string text;
  for (const auto& [axis, size] : job.workload.mesh) text += fmt::format("{}={} ", axis, size);
  return text;
}

bool cuts_sequences(const RowJob& job) {
  for (const AxisRule& rule : job.strategy.sharding.rules)
    if (rule.axis == "model" && std::ranges::find(rule.names, "seq") != rule.names.end()) return true;
  return false;
}

struct LayoutCase {
  const char* name;
  Cells cells;
  const char* mesh;
  ZeroStage stored;
  std::int64_t microbatches;
};

const LayoutCase kCases[] = {
    // 64 rows over 8 ranks, one each: 8 microbatches; the optimizer's state is sharded over all ranks.
    {"distributed_optimizer", {}, "fsdp=8 ", ZeroStage::state, 8},
    {"plain_data_parallel", {{"optimizer", "Adam"}}, "data=8 ", ZeroStage::nothing, 8},
    {"zero_2", {{"zero_stage", "2"}}, "fsdp=8 ", ZeroStage::gradients, 8},
    {"both_columns_state_one_group", {{"fsdp", "8"}, {"zero_stage", "3"}}, "fsdp=8 ", ZeroStage::parameters, 8},
    {"hybrid",
     {{"num_chips", "16"}, {"dp", "2"}, {"fsdp", "8"}, {"zero_stage", "3"}},
     "data=2 fsdp=8 ",
     ZeroStage::parameters,
     4},
    {"three_axes",
     {{"num_chips", "64"}, {"dp", "4"}, {"tp", "4"}, {"pp", "4"}, {"global_batch", "128"}, {"micro_batch", "2"}},
     "pipe=4 fsdp=4 model=4 ",
     ZeroStage::state,
     16},
    {"fsdp_from_the_devices",
     {{"num_chips", "16"}, {"dp", ""}, {"fsdp", "8"}, {"zero_stage", "3"}},
     "data=2 fsdp=8 ",
     ZeroStage::parameters,
     4},
    {"accumulated",
     {{"micro_batch", ""}, {"grad_accum", "2"}, {"pp", "2"}, {"dp", "4"}},
     "pipe=2 fsdp=4 ",
     ZeroStage::state,
     2},
    {"tpu_takes_its_batch_at_once",
     {{"accelerator", "TPU v5p"}, {"framework", "MaxText (JAX/XLA)"}, {"micro_batch", "8"}, {"zero_stage", "3"}},
     "fsdp=8 ",
     ZeroStage::parameters,
     1},
    {"two_devices_a_chip",
     {{"accelerator", "TPU v7x (Ironwood)"},
      {"framework", "MaxText (JAX/XLA)"},
      {"num_chips", "4"},
      {"notes", "topology 2x2x1; and more"},
      {"zero_stage", "3"}},
     "fsdp=8 ",
     ZeroStage::parameters,
     1},
    {"one_device", {{"num_chips", "1"}, {"dp", "1"}, {"global_batch", "4"}}, "", ZeroStage::state, 4},
};

class RowLayouts : public testing::TestWithParam<LayoutCase> {};
void PrintTo(const LayoutCase& of, std::ostream* out) { *out << of.name; }

TEST_P(RowLayouts, lies_as_worked_out) {
  const RowJob job = job_of(GetParam().cells);
  EXPECT_EQ(mesh_of(job), GetParam().mesh);
  EXPECT_EQ(job.workload.fully_sharded, GetParam().stored);
  EXPECT_EQ(job.workload.train.microbatches, GetParam().microbatches);
  EXPECT_EQ(job.workload.num_devices(), job.cluster.devices);
}

INSTANTIATE_TEST_SUITE_P(Rows, RowLayouts, testing::ValuesIn(kCases), [](const auto& of) { return of.param.name; });

TEST(RowJobs, a_model_is_what_its_columns_say) {
  const auto llama = job_of({}).workload.model.as<DecoderSpec>();
  EXPECT_STREQ(llama.name(), "llama");
  EXPECT_TRUE(llama.gated);
  EXPECT_EQ(llama.head, 128);
  EXPECT_EQ(llama.kv_heads, 8);
  const auto gpt =
      job_of({{"mlp_type", "gelu"}, {"n_kv_heads", ""}, {"tied_embeddings", "yes"}}).workload.model.as<DecoderSpec>();
  EXPECT_STREQ(gpt.name(), "gpt");
  EXPECT_EQ(gpt.kv_heads, 32);
  EXPECT_TRUE(gpt.tied);
  EXPECT_EQ(gpt.position, Position::learned);
  EXPECT_STREQ(
      job_of({{"notes", "encoder (bidirectional attention)"}, {"mlp_type", "gelu"}}).workload.model.family_name(),
      "bert");
  EXPECT_EQ(job_of({{"mlp_type", "squared-relu (2-matrix)"}}).workload.model.as<DecoderSpec>().activation,
            Activation::relu2);
}

TEST(RowJobs, latent_attention_and_layers_without_experts) {
  const auto model = job_of({{"attn_variant",
                              "MLA q_lora 1024 kv_lora 256 qk_nope 64 qk_rope 32 v 96; first 2 layers dense; 1 "
                              "shared expert"},
                             {"n_experts", "16"},
                             {"top_k", "2"},
                             {"moe_d_ff", "2048"}})
                         .workload.model.as<DecoderSpec>();
  EXPECT_EQ(model.mla.q_rank, 1024);
  EXPECT_EQ(model.mla.kv_rank, 256);
  EXPECT_EQ(model.mla.nope, 64);
  EXPECT_EQ(model.mla.rope, 32);
  EXPECT_EQ(model.mla.value, 96);
  EXPECT_EQ(model.moe.dense_layers, 2);
  EXPECT_EQ(model.moe.shared_experts, 1);
  EXPECT_EQ(model.mlp, 2048);
}

TEST(RowJobs, experts_in_every_second_layer) {
  const RowJob job = job_of({{"attn_variant", "1 shared expert; every 2nd layer MoE"},
                             {"n_experts", "16"},
                             {"top_k", "1"},
                             {"moe_d_ff", "2048"}});
  const auto& model = job.workload.model.as<DecoderSpec>();
  EXPECT_EQ(model.moe.every, 2);
  EXPECT_EQ(model.moe.dense_mlp, 14336);
  EXPECT_EQ(model.mlp, 2048);
}

TEST(RowJobs, a_vocabulary_in_the_notes_is_filled_up_as_megatron_does) {
  const RowJob job =
      job_of({{"vocab", ""}, {"notes", "dtype not stated (vocab 50,257 is the default)"}, {"tp", "8"}, {"dp", "1"}});
  EXPECT_EQ(job.workload.model.vocabulary(), 51200);  // the next multiple of 128 x 8
  EXPECT_EQ(job.taken.size(), 1u);
  EXPECT_EQ(refusal_of({{"vocab", ""}}), "vocabulary not told");
}

// 16 layers of 4 x 2048 x 2048 + 3 x 2048 x 8192 and a head of 2048 x 131072, as much as 4 layers, over four stages: a
// quarter is 5 layers. Stages take blocks until they exceed it: 6, 5, and only 4, because the last stage keeps one.
TEST(RowJobs, nanotron_cuts_stages_by_cost) {
  const RowJob job = job_of({{"framework", "nanotron"},
                             {"n_layers", "16"},
                             {"d_model", "2048"},
                             {"n_kv_heads", ""},
                             {"d_ff", "8192"},
                             {"vocab", "131072"},
                             {"pp", "4"},
                             {"dp", "2"}});
  EXPECT_EQ(job.workload.pipeline.layers, (std::vector<std::int64_t>{6, 5, 4, 1}));
}

TEST(RowJobs, sequences_are_cut_where_the_row_says_so) {
  EXPECT_FALSE(cuts_sequences(job_of({{"tp", "8"}, {"dp", "1"}})));
  EXPECT_TRUE(cuts_sequences(job_of({{"tp", "8"}, {"dp", "1"}, {"sequence_parallel", "yes"}})));
}

TEST(RowJobs, kernels_are_by_what_was_written_of_them) {
  EXPECT_EQ(job_of({}).kernels.attention, KernelChoice::Attention::best);
  EXPECT_EQ(job_of({{"attention", "fused softmax, no flash"}}).kernels.attention, KernelChoice::Attention::unfused);
  EXPECT_EQ(job_of({{"attention", "flash (attn_impl=flash)"}}).kernels.attention, KernelChoice::Attention::flash_2);
  EXPECT_EQ(job_of({{"attention", "flash (NeMo 23.x; not stated)"}}).kernels.attention,
            KernelChoice::Attention::unfused);
  EXPECT_EQ(job_of({{"dtype", "nvfp4"}}).kernels.products, ProductType::fp4);
  EXPECT_EQ(job_of({{"dtype", "mxfp8"}}).kernels.products, ProductType::fp8);
  EXPECT_EQ(job_of({{"dtype", "bf16 (fp32 grad accumulation)"}}).workload.train.precision.reduce, DType::f32);
  EXPECT_EQ(job_of({}).workload.train.precision.reduce, DType::bf16);
}

// Choices of Megatron that no table states; they depend on the profile and on recomputation.
TEST(RowJobs, stacks_do_what_no_row_says) {
  const Cells full = {{"framework", "Megatron-LM"}, {"recompute", "full"}};
  EXPECT_TRUE(job_of(full).kernels.whole_again);
  EXPECT_TRUE(job_of(full).kernels.sums_in_products);
  EXPECT_FALSE(job_of({{"framework", "Megatron-LM"}, {"recompute", "selective (core attention)"}}).kernels.whole_again);
  EXPECT_FALSE(job_of({{"framework", "PyTorch FSDP"}, {"recompute", "full"}}).kernels.whole_again);
  const Cells mixture = {{"n_experts", "8"}, {"top_k", "2"}, {"moe_d_ff", "1024"}};
  const auto sent_once = [&](const char* notes) {
    Cells cells = mixture;
    cells["notes"] = notes;
    return job_of(cells).kernels.sent_once;
  };
  EXPECT_EQ(sent_once("MoE dispatcher hybridep"), 2);
  EXPECT_EQ(sent_once("MoE dispatcher alltoall"), 0);
}

TEST(RowJobs, recompute_is_a_policy_by_name) {
  using Kind = RecomputeSpec::Kind;
  const auto recompute = [](const char* text) { return job_of({{"recompute", text}}).workload.train.recompute; };
  EXPECT_EQ(recompute("none").kind, Kind::none);
  EXPECT_EQ(recompute("full (checkpoint-activations)").kind, Kind::block);
  EXPECT_EQ(recompute("selective (core attention)").kind, Kind::attention);
  EXPECT_EQ(recompute("selective: save_qkv_proj").save, (std::vector<std::string>{"attn.q", "attn.k", "attn.v"}));
  EXPECT_EQ(recompute("selective: save layer input,context,q").save, (std::vector<std::string>{"attn.o", "attn.q"}));
  EXPECT_EQ(recompute("host offload: decoder_layer_input").kind, Kind::block);
  EXPECT_EQ(refusal_of({{"recompute", "selective (every 2nd layer)"}}), "recompute of some layers only");
  EXPECT_EQ(refusal_of({{"recompute", "by feel"}}), "recompute 'by feel'");
}

// Per device of a machine of eight, one way, in GB/s.
TEST(RowJobs, networks_are_per_device) {
  const auto network = [](const char* text) { return job_of({{"network", text}}).cluster.network->count() / 1e9; };
  EXPECT_EQ(job_of({}).cluster.network, std::nullopt);
  EXPECT_DOUBLE_EQ(network("DGX-H100, 8x400 Gb/s IB"), 50);
  EXPECT_DOUBLE_EQ(network("1600 Gbps node-node RoCE"), 25);
  EXPECT_DOUBLE_EQ(network("intra NVLink; inter-node 800 Gb/s per node (repo config)"), 12.5);
  EXPECT_DOUBLE_EQ(network("400 Gb/s RDMA per GPU"), 50);
  EXPECT_DOUBLE_EQ(network("4x Omni-Path (OPA 100 Gb/s) links per node + NVLink"), 6.25);
}

TEST(RowJobs, refusals_have_names) {
  EXPECT_EQ(refusal_of({{"notes", "hybrid Mamba-Transformer"}}), "hybrid Mamba");
  EXPECT_EQ(refusal_of({{"notes", "cuda graph ['attn', 'mamba']"}}), "no refusal");
  EXPECT_EQ(refusal_of({{"framework", "NVIDIA Merlin HugeCTR"}}), "recommender model");
  EXPECT_EQ(refusal_of({{"n_layers", ""}, {"seq_len", ""}}), "dimensions not told: n_layers, seq_len");
  EXPECT_EQ(refusal_of({{"micro_batch", ""}, {"pp", "2"}, {"dp", "4"}}), "microbatch not told");
  EXPECT_EQ(refusal_of({{"dp", "7"}}), "layout does not multiply to the devices");
  EXPECT_EQ(refusal_of({{"global_batch", "4"}}), "less than a row on each rank of the batch");
  EXPECT_EQ(refusal_of({{"accelerator", "H100-PCIe-80GB"}}), "a chip that the catalog does not have: H100-PCIe-80GB");
  EXPECT_EQ(refusal_of({{"vpp", "interleaved"}, {"pp", "2"}, {"dp", "4"}}),
            "interleaved in a number of chunks that is not told");
  EXPECT_EQ(refusal_of({{"vpp", "2"}, {"pp", "4"}, {"dp", "2"}, {"global_batch", "12"}}),
            "interleaved, with microbatches that the stages do not divide");
}

TEST(RowWords, finds_numbers_beside_words) {
  EXPECT_EQ(number_after("vocab 50,257 is", "vocab"), 50257);
  EXPECT_EQ(number_after("NHEADS=64 (above too)", "nheads"), 64);
  EXPECT_EQ(number_after("window size", "window"), std::nullopt);
  EXPECT_EQ(number_before("8x400 Gb/s IB", " Gb/s"), 400);
  EXPECT_EQ(number_before("some Gb/s", " Gb/s"), std::nullopt);
  EXPECT_TRUE(says("FP8 hybrid", "fp8"));
  EXPECT_FALSE(says("", "x"));
}

}  // namespace
}  // namespace systole::backtest
