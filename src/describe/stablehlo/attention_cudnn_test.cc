// Attention by cuDNN's kernels: the text equals that of jax 0.10.2 for the same call (compared by hand: names,
// operands, layouts and every field with a nonzero value). Unsupported calls are written in blocks, with a note.

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/stablehlo/module.h"

namespace systole::stablehlo {
namespace {

struct Call {
  DType dtype = DType::bf16;
  std::int64_t t = 256, s = 256, d = 64;
  bool causal = true;
  std::int64_t window = 0;
  bool segments = false, offsets = false, bias = false;
};

Graph graph_of(const Call& call) {
  Graph graph("step");
  const Value q = graph.input("q", Type(call.dtype, {2, call.t, 8, call.d}));
  const Value k = graph.input("k", Type(call.dtype, {2, call.s, 2, call.d})), v = graph.input("v", k.type());
  const Value g = graph.input("g", q.type());
  AttentionOptions options{call.causal, 0.125, {}, {}, {}};
  options.window = call.window;
  if (call.segments) {
    options.q_segments = graph.input("q_segments", Type(DType::i32, {2, call.t}));
    options.k_segments = graph.input("k_segments", Type(DType::i32, {2, call.s}));
  }
  if (call.offsets) options.offset = graph.input("offset", Type(DType::i32, {2}));
  if (call.bias) options.bias_by_distance = graph.input("bias", Type(DType::f32, {8, 32}));
  const Attention a = attention(q, k, v, options);
  const AttentionGrad d = attention_grad(q, k, v, a.o, a.lse, g, options);
  graph.output("dq", d.dq);
  graph.output("dk", d.dk);
  graph.output("dv", d.dv);
  return graph;
}

Module lowered(const Call& call, AttentionKind kind = AttentionKind::cudnn) {
  LowerOptions options;
  options.attention = kind;
  return lower(graph_of(call), options);
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The text between the first occurrences of two marks.
std::string between(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t begin = text.find(from), end = begin == std::string::npos ? begin : text.find(to, begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

TEST(AttentionCudnn, ForwardIsTheCustomCall) {
  const Module module = lowered({});
  const std::string line = between(module.text, "\"stablehlo.custom_call\"", "\n");
  EXPECT_TRUE(holds(line, "(%arg0, %arg1, %arg2) {call_target_name = \"__cudnn$fmhaSoftmax\"")) << line;
  EXPECT_TRUE(holds(line,
                    "result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : "
                    "tensor<3xindex>, dense<[0]> : tensor<1xindex>]"))
      << line;
  EXPECT_TRUE(holds(line,
                    "(tensor<2x256x8x64xbf16>, tensor<2x256x2x64xbf16>, tensor<2x256x2x64xbf16>) -> "
                    "(tensor<2x8x256x64xbf16>, tensor<2x8x256xf32>, tensor<0xui8>)"))
      << line;
  EXPECT_EQ(
      between(line, "backend_config = ", ", api_version"),
      R"(backend_config = "{\"operation_queue_id\": \"0\", \"cudnn_fmha_backend_config\": {\"algorithm\": )"
      R"({\"algo_id\": \"0\", \"math_type\": \"TENSOR_OP_MATH\", \"tuning_knobs\": {\"17\": \"1\", \"24\": \"0\"}, )"
      R"(\"is_cudnn_frontend\": true, \"workspace_size\": \"0\"}, \"fmha_scale\": 0.125, \"dropout_rate\": 0.0, )"
      R"(\"seed\": \"0\", \"intermediate_tensor_shape\": {\"element_type\": \"BF16\", \"dimensions\": [\"2\", \"8\", )"
      R"(\"256\", \"256\"], \"layout\": {\"minor_to_major\": [\"3\", \"2\", \"1\", \"0\"]}, )"
      R"(\"is_dynamic_dimension\": [false, false, false, false]}, \"is_flash_attention\": true, \"mask_type\": )"
      R"(\"CAUSAL\", \"sliding_window_length\": 0, \"max_seg_per_batch\": 1, \"is_paged_attention\": false, )"
      R"(\"bmm1_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": )"
      R"([\"3\"], \"lhs_batch_dimensions\": [\"0\", \"2\"], \"rhs_batch_dimensions\": [\"0\", \"2\"]}, )"
      R"(\"bmm2_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": )"
      R"([\"1\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"2\"]}}}")");
}

TEST(AttentionCudnn, BackwardTakesTheStatisticAndTheResult) {
  const Module module = lowered({.causal = false});
  const std::string back = module.text.substr(module.text.find("__cudnn$fmhaSoftmaxBackward"));
  EXPECT_TRUE(holds(back, R"(\"mask_type\": \"NO_MASK\")"));
  for (const char* product : {"bmm1_grad_gemm1_dot_dimension_numbers", "bmm1_grad_gemm2_dot_dimension_numbers",
                              "bmm2_grad_gemm1_dot_dimension_numbers", "bmm2_grad_gemm2_dot_dimension_numbers"})
    EXPECT_TRUE(holds(back, product)) << product;
  EXPECT_TRUE(holds(back,
                    "(tensor<2x256x8x64xbf16>, tensor<2x256x2x64xbf16>, tensor<2x256x2x64xbf16>, "
                    "tensor<2x8x256xf32>, tensor<2x256x8x64xbf16>, tensor<2x256x8x64xbf16>) -> "
                    "(tensor<2x8x256x64xbf16>, tensor<2x2x256x64xbf16>, tensor<2x2x256x64xbf16>, tensor<0xui8>)"))
      << between(back, "result_layouts", "\n");
}

TEST(AttentionCudnn, WhichOneItBecameIsSaid) {
  EXPECT_EQ(lowered({}).notes,
            (std::vector<std::string>{"attention: cuDNN's kernel", "attention_grad: cuDNN's kernel"}));
  EXPECT_EQ(lowered({}, AttentionKind::blocked).notes,
            (std::vector<std::string>{"attention: in blocks", "attention_grad: in blocks"}));
}

TEST(AttentionCudnn, WhatItDoesNotTakeIsInBlocksAndSaidWhy) {
  const std::pair<Call, const char*> refused[] = {
      {{.dtype = DType::f32}, "f32"}, {{.d = 192}, "heads of 192"},
      {{.d = 20}, "heads of 20"},     {{.t = 128}, "128 queries causal to 256 keys"},
      {{.window = 64}, "a window"},   {{.segments = true}, "segments"},
      {{.offsets = true}, "offsets"}, {{.bias = true}, "a bias by distance"},
  };
  for (const auto& [call, reason] : refused) {
    const Module module = lowered(call);
    EXPECT_FALSE(holds(module.text, "__cudnn")) << reason;
    ASSERT_EQ(module.notes.size(), 2U) << reason;
    EXPECT_EQ(module.notes[0], fmt::format("attention: in blocks, for cuDNN's kernel does not take {}", reason));
    EXPECT_EQ(module.notes[1], fmt::format("attention_grad: in blocks, for cuDNN's kernel does not take {}", reason));
  }
  EXPECT_TRUE(holds(lowered({.dtype = DType::f16, .t = 128, .d = 128, .causal = false}).text, "custom_call"));
}

}  // namespace
}  // namespace systole::stablehlo
