#include "execute/backends/cpu/contract_places.h"

#include "ground/tensor/dtype.h"

namespace systole::cpu {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
std::int64_t bytes_of(const std::optional<Packing>& packing, const Type& type) {
  return packing ? aligned(type.bytes().count()) : 0;
}

CopyArgs copy_of(const Packing& packing, std::int64_t elem_size, bool into_packed, int threads) {
  CopyArgs args{};
  args.elem_size = static_cast<int>(elem_size);
  args.operand_elements = packing.elements;
  args.ndim = static_cast<int>(packing.size.size());
  args.threads = threads;
  std::int64_t stride = 1;
  for (int k = args.ndim - 1; k >= 0; --k) {
    const auto i = static_cast<std::size_t>(k);
    args.size[k] = packing.size[i];
    args.src_stride[k] = into_packed ? packing.stride[i] : stride;
    args.dst_stride[k] = into_packed ? stride : packing.stride[i];
    stride *= packing.size[i];
  }
  return args;
}

}  // namespace

std::int64_t ContractPlaces::packed_bytes(const ContractPlan& plan, const ContractTypes& types) {
  return bytes_of(plan.pack_a, types.a) + bytes_of(plan.pack_b, types.b) + bytes_of(plan.pack_y, types.y);
}

ContractPlaces::ContractPlaces(const ContractPlan& plan, const ContractTypes& types, const Kernels& kernels,
                               int threads, const void* a, const void* b, void* y, void* packed)
    : plan_(plan), kernels_(kernels), elem_(size_of(types.a.dtype)), out_elem_(size_of(types.y.dtype)) {
  auto* at = static_cast<char*>(packed);
  const auto place = [&](const std::optional<Packing>& packing, const Type& type, const void* given,
                         std::optional<CopyArgs>& copy) -> const void* {
    if (!packing) return given;
    copy = copy_of(*packing, size_of(type.dtype), true, threads);
    copy->src = given;
    copy->dst = at;
    at += bytes_of(packing, type);
    return copy->dst;
  };
  a = place(plan.pack_a, types.a, a, copy_a_);
  b = place(plan.pack_b, types.b, b, copy_b_);
  if (plan.pack_y) {
    copy_y_ = copy_of(*plan.pack_y, out_elem_, false, threads);
    copy_y_->src = at;
    copy_y_->dst = y;
    y = at;
  }
  left_ = static_cast<const char*>(plan.swapped ? b : a);
  right_ = static_cast<const char*>(plan.swapped ? a : b);
  out_ = static_cast<char*>(y);
}

void ContractPlaces::pack() const {
  if (copy_a_) kernels_.copy(*copy_a_);
  if (copy_b_) kernels_.copy(*copy_b_);
}

void ContractPlaces::unpack() const {
  if (copy_y_) kernels_.copy(*copy_y_);
}

}  // namespace systole::cpu
