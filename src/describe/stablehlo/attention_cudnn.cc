#include "describe/stablehlo/attention_cudnn.h"

#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "describe/ir/op.h"
#include "describe/stablehlo/attention_blocks.h"

namespace systole::stablehlo {
namespace {

// A product of the fused kernel, as dims of its operands: q, k, v, o and gradients are [b, t, h, d], scores
// [b, h, t, s].
struct Product {
  const char* name;
  int a_contract, b_contract;
  std::array<int, 2> a_batch, b_batch;
};

constexpr Product kForward[] = {
    {"bmm1", 3, 3, {0, 2}, {0, 2}},  // q, k: scores
    {"bmm2", 3, 1, {0, 1}, {0, 2}},  // weights, v: o
};
constexpr Product kBackward[] = {
    {"bmm1_grad_gemm1", 2, 1, {0, 1}, {0, 2}},  // dscores, q: dk
    {"bmm1_grad_gemm2", 3, 1, {0, 1}, {0, 2}},  // dscores, k: dq
    {"bmm2_grad_gemm1", 2, 1, {0, 1}, {0, 2}},  // weights, g: dv
    {"bmm2_grad_gemm2", 3, 3, {0, 2}, {0, 2}},  // g, v: dweights
};

std::string product_text(const Product& product) {
  return fmt::format(
      R"("{}_dot_dimension_numbers": {{"lhs_contracting_dimensions": ["{}"], "rhs_contracting_dimensions": ["{}"], )"
      R"("lhs_batch_dimensions": ["{}", "{}"], "rhs_batch_dimensions": ["{}", "{}"]}})",
      product.name, product.a_contract, product.b_contract, product.a_batch[0], product.a_batch[1], product.b_batch[0],
      product.b_batch[1]);
}

// In JSON, 64-bit numbers of a proto are strings.
std::string config_of(const NodeCall& call, std::span<const Product> products) {
  const Type &q = call.operands[0].type, &k = call.operands[1].type;
  std::vector<std::string> fields{
      R"("algorithm": {"algo_id": "0", "math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"}, )"
      R"("is_cudnn_frontend": true, "workspace_size": "0"})",
      fmt::format(R"("fmha_scale": {})", call.node.attrs.get_double("scale")),
      R"("dropout_rate": 0.0, "seed": "0")",
      fmt::format(R"("intermediate_tensor_shape": {{"element_type": "{}", "dimensions": ["{}", "{}", "{}", "{}"], )"
                  R"("layout": {{"minor_to_major": ["3", "2", "1", "0"]}}, )"
                  R"("is_dynamic_dimension": [false, false, false, false]}})",
                  q.dtype == DType::bf16 ? "BF16" : "F16", q.size(0), q.size(2), q.size(1), k.size(1)),
      R"("is_flash_attention": true)",
      fmt::format(R"("mask_type": "{}")", call.node.attrs.get_bool("causal") ? "CAUSAL" : "NO_MASK"),
      R"("sliding_window_length": 0, "max_seg_per_batch": 1, "is_paged_attention": false)"};
  for (const Product& product : products) fields.push_back(product_text(product));
  return fmt::format(R"({{"operation_queue_id": "0", "cudnn_fmha_backend_config": {{{}}}}})", fmt::join(fields, ", "));
}

// The dim order of the kernels for [b, t, h, d]: [b, h, t, d], with the memory layout unchanged.
constexpr int kSwapped[] = {0, 2, 1, 3};
const std::vector<int> kAsItLies{3, 1, 2, 0};

Type swapped(const Type& type) { return Type(type.dtype, {type.size(0), type.size(2), type.size(1), type.size(3)}); }

// Scratch memory of the kernel; XLA sets its size.
const Type kWorkspace(DType::u8, {0});

// The reason why cuDNN does not support a call ("segments"), or nothing.
std::optional<std::string> cudnn_refuses(const NodeCall& call, int first) {
  const AttentionFlags flags(call.node.attrs, first);
  const Type &q = call.operands[0].type, &k = call.operands[1].type;
  if (q.dtype != DType::bf16 && q.dtype != DType::f16) return std::string(name_of(q.dtype));
  if (q.size(3) > 128 || q.size(3) % 8 != 0 || q.size(3) == 0) return fmt::format("heads of {}", q.size(3));
  if (flags.q_segments >= 0) return "segments";
  if (flags.offset >= 0) return "offsets";
  if (flags.bias >= 0) return "a bias by distance";
  if (flags.window > 0) return "a window";
  if (flags.causal && q.size(1) != k.size(1)) return fmt::format("{} queries causal to {} keys", q.size(1), k.size(1));
  if (q.num_elements() == 0 || k.num_elements() == 0) return "nothing to attend to";
  return std::nullopt;
}

}  // namespace

bool goes_to_cudnn(const NodeCall& call, int first) {
  const char* op = call.node.op->name;
  if (call.around.options().attention == AttentionKind::blocked) {
    call.around.note(fmt::format("{}: in blocks", op));
    return false;
  }
  const std::optional<std::string> reason = cudnn_refuses(call, first);
  if (reason) {
    call.around.note(fmt::format("{}: in blocks, for cuDNN's kernel does not take {}", op, *reason));
  } else {
    call.around.note(fmt::format("{}: cuDNN's kernel", op));
  }
  return !reason;
}

std::vector<Ssa> attention_by_cudnn(Builder& b, const NodeCall& call) {
  const Type results[] = {swapped(call.results[0]), call.results[1], kWorkspace};
  const std::vector<int> layouts[] = {kAsItLies, {2, 1, 0}, {0}};
  const std::vector<Ssa> made =
      b.custom_call("__cudnn$fmhaSoftmax", call.operands.first(3), results, config_of(call, kForward), layouts);
  return {b.transpose(made[0], kSwapped), made[1]};
}

std::vector<Ssa> attention_grad_by_cudnn(Builder& b, const NodeCall& call) {
  const Ssa &o = call.operands[3], &lse = call.operands[4], &g = call.operands[5];
  const Ssa operands[] = {call.operands[0], call.operands[1], call.operands[2], lse, g, o};
  const Type results[] = {swapped(call.results[0]), swapped(call.results[1]), swapped(call.results[2]), kWorkspace};
  const std::vector<int> layouts[] = {kAsItLies, kAsItLies, kAsItLies, {0}};
  const std::vector<Ssa> made =
      b.custom_call("__cudnn$fmhaSoftmaxBackward", operands, results, config_of(call, kBackward), layouts);
  return {b.transpose(made[0], kSwapped), b.transpose(made[1], kSwapped), b.transpose(made[2], kSwapped)};
}

}  // namespace systole::stablehlo
