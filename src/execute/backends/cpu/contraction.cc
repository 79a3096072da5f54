// contract by oneDNN or gemm; products with weights in int8, attention and its gradient by our own kernels.

#include "describe/ir/served_adapters.h"
#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {
namespace {

Result<const Contraction*> contraction_of(const NodeInfo& info, Shared& shared) {
  return shared.contractions.get(info.attrs().get_string("spec"), info.operand(0), info.operand(1), info.result(0));
}
std::string refuses_contract(const NodeInfo& info, Shared& shared) {
  const auto contraction = contraction_of(info, shared);
  return contraction.ok() ? std::string() : contraction.error().message;
}
std::int64_t contract_scratch(const NodeInfo& info, Shared& shared) {
  const auto contraction = contraction_of(info, shared);
  return contraction.ok() ? contraction.value()->workspace() : 0;  // a refusal is reported when compiling
}
BoundKernel bind_contract(const NodeInfo& info, const Places& places, Shared& shared) {
  return contraction_of(info, shared)
      .value()
      ->bind(places.operand(0), places.operand(1), places.result(0), places.workspace);
}

bool has_bias(const NodeInfo& info) { return info.attrs().find("bias_origin") != nullptr; }

// A bias by distance, if present, is the last operand.
AttentionShape shape_of(const NodeInfo& info) {
  CHECK(info.attrs().find("zigzag") == nullptr,
        "rows in zigzag order, which partitioning cuts into chunks that are not");
  const Type &q = info.operand(0), &k = info.operand(1);
  return {q.size(0),
          q.size(1),
          k.size(1),
          q.size(2),
          k.size(2),
          q.size(3),
          info.attrs().get_bool("causal"),
          info.attrs().get_double("scale"),
          info.attrs().find("window") == nullptr ? 0 : info.attrs().get_int("window"),
          has_bias(info) ? info.operand(info.num_operands() - 1).size(1) : 0,
          has_bias(info) ? info.attrs().get_int("bias_origin") : 0};
}
const float* bias_of(const NodeInfo& info, const Places& places) {
  return has_bias(info) ? places.operand<float>(info.num_operands() - 1) : nullptr;
}

struct Masks {
  const std::int32_t *q_segments = nullptr, *k_segments = nullptr, *offset = nullptr;
};
// `first`: number of operands before the masks.
Masks masks_of(const NodeInfo& info, const Places& places, int first) {
  Masks masks;
  if (info.attrs().get_bool("segments")) {
    masks.q_segments = places.operand<std::int32_t>(first++);
    masks.k_segments = places.operand<std::int32_t>(first++);
  }
  if (info.attrs().get_bool("offsets")) masks.offset = places.operand<std::int32_t>(first);
  return masks;
}

std::int64_t attention_scratch(const NodeInfo& info, Shared& shared) {
  return attention_workspace(shape_of(info), shared.threads);
}
BoundKernel bind_attention(const NodeInfo& info, const Places& places, Shared& shared) {
  const Masks masks = masks_of(info, places, 3);
  return call(shared.kernels.attention,
              AttentionArgs{shape_of(info), elem(info.operand(0)), places.operand(0), places.operand(1),
                            places.operand(2), masks.q_segments, masks.k_segments, masks.offset, places.result(0),
                            places.result<float>(1), places.workspace, shared.threads, bias_of(info, places)});
}

std::int64_t attention_grad_scratch(const NodeInfo& info, Shared& shared) {
  const AttentionShape shape = shape_of(info);
  return attention_grad_workspace(shape, shared.threads) + attention_bias_workspace(shape);
}
BoundKernel bind_attention_grad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Masks masks = masks_of(info, places, 6);
  return call(shared.kernels.attention_grad,
              AttentionGradArgs{shape_of(info), elem(info.operand(0)), places.operand(0), places.operand(1),
                                places.operand(2), places.operand(3), places.operand<float>(4), places.operand(5),
                                masks.q_segments, masks.k_segments, masks.offset, places.result(0), places.result(1),
                                places.result(2), places.workspace, shared.threads, bias_of(info, places),
                                has_bias(info) ? places.result<float>(3) : nullptr});
}

PagedShape paged_shape_of(const NodeInfo& info) {
  const Type &q = info.operand(0), &k = info.operand(1);
  return {q.size(0),
          q.size(1),
          q.size(2),
          k.size(2),
          q.size(3),
          k.size(0),
          k.size(1),
          info.operand(3).size(1),
          info.attrs().get_double("scale"),
          info.attrs().find("window") == nullptr ? 0 : info.attrs().get_int("window")};
}
std::int64_t paged_attention_scratch(const NodeInfo& info, Shared& shared) {
  return paged_attention_workspace(paged_shape_of(info), shared.threads);
}
BoundKernel bind_paged_attention(const NodeInfo& info, const Places& places, Shared& shared) {
  return call(shared.kernels.paged_attention,
              PagedAttentionArgs{paged_shape_of(info), elem(info.operand(0)), elem(info.operand(1)), places.operand(0),
                                 places.operand(1), places.operand(2), places.operand<std::int32_t>(3),
                                 places.operand<std::int32_t>(4), places.result(0), places.workspace, shared.threads});
}

std::int64_t rows_of(const Type& x) { return num_elements(Shape(x.shape.begin(), x.shape.end() - 1)); }
std::int64_t contract_int8_scratch(const NodeInfo& info, Shared&) {
  return contract_int8_workspace(rows_of(info.operand(0)), info.operand(0).shape.back());
}
BoundKernel bind_contract_int8(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& w = info.operand(1);
  return call(shared.kernels.contract_int8,
              ContractInt8Args{places.operand<float>(0), places.operand<std::int8_t>(1), places.operand<float>(2),
                               places.result<float>(0), rows_of(info.operand(0)), w.size(0), w.size(1),
                               shared.int8_unit, places.workspace, shared.threads});
}
BoundKernel bind_embedding_int8(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& table = info.operand(0);
  return call(shared.kernels.embedding_int8,
              EmbeddingInt8Args{places.operand<std::int8_t>(0), places.operand<float>(1),
                                places.operand<std::int32_t>(2), places.result<float>(0),
                                info.operand(2).num_elements(), table.size(0), table.size(1), shared.threads});
}

std::int64_t contract_int4_scratch(const NodeInfo& info, Shared&) {
  return contract_int4_workspace(rows_of(info.operand(0)), info.operand(0).shape.back());
}
BoundKernel bind_contract_int4(const NodeInfo& info, const Places& places, Shared& shared) {
  return call(
      shared.kernels.contract_int4,
      ContractInt4Args{places.operand<float>(0), places.operand<std::uint8_t>(1), places.operand<std::uint16_t>(2),
                       places.result<float>(0), rows_of(info.operand(0)), info.result(0).shape.back(),
                       info.operand(0).shape.back(), shared.int8_unit, places.workspace, shared.threads});
}

static_assert(kMostAdapterRank == kMostLoraRank);
BoundKernel bind_lora_rows(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type &x = info.operand(0), &a = info.operand(2);
  return call(
      shared.kernels.lora_rows,
      LoraRowsArgs{places.operand<float>(0), places.operand<float>(1), places.operand<float>(2),
                   places.operand<float>(3), places.operand<std::int32_t>(4), places.result<float>(0), x.size(0),
                   x.size(1), a.size(2), info.operand(1).size(2), a.size(0), a.size(1), shared.threads});
}

constexpr KernelEntry kEntries[] = {
    {"contract", refuses_contract, contract_scratch, bind_contract, "matmul"},
    {"contract_int8", accepts, contract_int8_scratch, bind_contract_int8, "int8", true},
    {"embedding_int8", accepts, nullptr, bind_embedding_int8, "int8", true},
    {"contract_int4", accepts, contract_int4_scratch, bind_contract_int4, "int4", true},
    {"lora_rows", accepts, nullptr, bind_lora_rows, "lora"},
    {"attention", accepts, attention_scratch, bind_attention, "attention"},
    {"attention_grad", accepts, attention_grad_scratch, bind_attention_grad, "attention"},
    {"paged_attention", accepts, paged_attention_scratch, bind_paged_attention, "paged_attention"}};

}  // namespace

std::span<const KernelEntry> contraction_entries() { return kEntries; }

}  // namespace systole::cpu
