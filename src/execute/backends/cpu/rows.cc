// Ops over rows and reductions.

#include <algorithm>

#include "execute/backends/cpu/kernels/team.h"
#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {
namespace {

struct Rows {
  std::int64_t rows, n;
};
Rows rows_of(const Type& type) {
  const std::int64_t n = type.shape.back();
  return {num_elements(Shape(type.shape.begin(), type.shape.end() - 1)), n};
}

std::int64_t softmax_scratch(const NodeInfo& info, Shared& shared) {
  return softmax_workspace(elem(info.operand(0)), rows_of(info.operand(0)).n, shared.threads);
}
BoundKernel bind_softmax(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  return call(shared.kernels.softmax, SoftmaxArgs{places.operand(0), places.result(0), elem(info.operand(0)), r.rows,
                                                  r.n, places.workspace, shared.threads});
}

BoundKernel bind_cross_entropy(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  return call(shared.kernels.cross_entropy,
              CrossEntropyArgs{places.operand(0), places.operand<std::int32_t>(1), places.result<float>(0),
                               places.result<float>(1), elem(info.operand(0)), r.rows, r.n, shared.threads});
}
BoundKernel bind_cross_entropy_grad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  return call(shared.kernels.cross_entropy_grad,
              CrossEntropyGradArgs{places.operand(0), places.operand<std::int32_t>(1), places.operand<float>(2),
                                   places.operand<float>(3), places.result(0), elem(info.operand(0)), r.rows, r.n,
                                   shared.threads});
}

BoundKernel bind_rms_norm(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  return call(shared.kernels.rms_norm,
              RmsNormArgs{places.operand(0), places.operand(1), places.result(0), places.result<float>(1),
                          elem(info.operand(0)), elem(info.operand(1)), r.rows, r.n, info.attrs().get_double("eps"),
                          shared.threads});
}
BoundKernel bind_layer_norm(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  return call(shared.kernels.layer_norm,
              LayerNormArgs{places.operand(0), places.operand(1), places.operand(2), places.result(0),
                            places.result<float>(1), places.result<float>(2), elem(info.operand(0)),
                            elem(info.operand(1)), r.rows, r.n, info.attrs().get_double("eps"), shared.threads});
}

// The number of vector gradients of a norm, besides dx.
int num_vectors(const NodeInfo& info) { return info.num_results() - 1; }
std::int64_t norm_grad_scratch(const NodeInfo& info, Shared&) {
  const Rows r = rows_of(info.operand(0));
  return norm_grad_workspace(r.rows, r.n, num_vectors(info));
}
BoundKernel bind_rms_norm_grad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  void* const dscale = num_vectors(info) > 0 ? places.result(1) : nullptr;
  return call(shared.kernels.rms_norm_grad,
              RmsNormGradArgs{places.operand(0), places.operand(1), places.operand<float>(2), places.operand(3),
                              places.result(0), dscale, elem(info.operand(0)), elem(info.operand(1)), r.rows, r.n,
                              places.workspace, shared.threads});
}
BoundKernel bind_layer_norm_grad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Rows r = rows_of(info.operand(0));
  const bool vectors = num_vectors(info) > 0;
  return call(
      shared.kernels.layer_norm_grad,
      LayerNormGradArgs{places.operand(0), places.operand(1), places.operand<float>(2), places.operand<float>(3),
                        places.operand(4), places.result(0), vectors ? places.result(1) : nullptr,
                        vectors ? places.result(2) : nullptr, elem(info.operand(0)), elem(info.operand(1)), r.rows, r.n,
                        places.workspace, shared.threads});
}

std::string refuses_reduce(const NodeInfo& info, Shared&) {
  const Type &x = info.operand(0), &y = info.result(0);
  if (x.ndim() > kMaxDims) return fmt::format("{} dims, more than {}", x.ndim(), kMaxDims);
  const bool counts = !is_float(x.dtype) && y.dtype == DType::f32;
  if ((is_float(x.dtype) != is_float(y.dtype) && !counts) || y.dtype == DType::boolean)
    return fmt::format("a sum of {} as {}", systole::name_of(x.dtype), systole::name_of(y.dtype));
  return {};
}
template <ReduceKind kKind>
BoundKernel bind_reduce(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.operand(0);
  ReduceArgs args{};
  args.kind = kKind;
  args.x = places.operand(0);
  args.y = places.result(0);
  args.elem = elem(x);
  args.y_elem = elem(info.result(0));
  args.ndim = x.ndim();
  for (int k = 0; k < x.ndim(); ++k) args.size[k] = x.size(k);
  if (kKind == ReduceKind::sum_of_squares) {
    for (int k = 0; k < x.ndim(); ++k) args.reduced[k] = true;
  } else {
    for (const std::int64_t dim : info.attrs().get_ints("dims")) args.reduced[dim] = true;
  }
  args.threads = shared.threads;
  return call(shared.kernels.reduce, args);
}

// Each block is summed by one thread, so that a sum's bits depend on its elements alone.
KernelReport squares_of_blocks(const Kernels& kernels, const ReduceArgs& like, std::int64_t n, std::int64_t block,
                               std::int64_t layers) {
  struct Blocks {
    const Kernels& kernels;
    const ReduceArgs& like;
    std::int64_t layer, block, of_layer;
  };
  const std::int64_t layer = n / layers;
  const Blocks blocks{kernels, like, layer, block, (layer + block - 1) / block};
  const auto sum = [](void* context, std::int64_t index, int) {
    const Blocks& b = *static_cast<const Blocks*>(context);
    const std::int64_t in_layer = index % b.of_layer * b.block, first = index / b.of_layer * b.layer + in_layer;
    ReduceArgs args = b.like;
    args.x = static_cast<const char*>(b.like.x) + first * size_of(b.like.elem);
    args.y = static_cast<char*>(b.like.y) + index * size_of(b.like.y_elem);
    args.ndim = 1;
    args.size[0] = std::min(b.block, b.layer - in_layer);
    args.reduced[0] = true;
    args.threads = 1;
    b.kernels.reduce(args);
  };
  const std::int64_t sums = blocks.of_layer * layers;
  run_parts(like.threads, sums, Schedule::contiguous, sum, const_cast<Blocks*>(&blocks));
  return {2 * n, 0, 0, 0, n * size_of(like.elem), sums * size_of(like.y_elem)};
}

BoundKernel bind_squares(const NodeInfo& info, const Places& places, Shared& shared) {
  if (info.attrs().find("block") == nullptr) return bind_reduce<ReduceKind::sum_of_squares>(info, places, shared);
  ReduceArgs args{};
  args.kind = ReduceKind::sum_of_squares;
  args.x = places.operand(0);
  args.y = places.result(0);
  args.elem = elem(info.operand(0));
  args.y_elem = elem(info.result(0));
  args.threads = shared.threads;
  return [&kernels = shared.kernels, args, n = info.operand(0).num_elements(), block = info.attrs().get_int("block"),
          layers = info.attrs().get_int("layers")] { return squares_of_blocks(kernels, args, n, block, layers); };
}

constexpr KernelEntry kEntries[] = {{"softmax", accepts, softmax_scratch, bind_softmax, "softmax"},
                                    {"cross_entropy", accepts, nullptr, bind_cross_entropy, "cross_entropy"},
                                    {"cross_entropy_grad", accepts, nullptr, bind_cross_entropy_grad, "cross_entropy"},
                                    {"rms_norm", accepts, nullptr, bind_rms_norm, "norm"},
                                    {"rms_norm_grad", accepts, norm_grad_scratch, bind_rms_norm_grad, "norm"},
                                    {"layer_norm", accepts, nullptr, bind_layer_norm, "norm"},
                                    {"layer_norm_grad", accepts, norm_grad_scratch, bind_layer_norm_grad, "norm"},
                                    {"reduce_sum", refuses_reduce, nullptr, bind_reduce<ReduceKind::sum>, "reduce"},
                                    {"reduce_max", refuses_reduce, nullptr, bind_reduce<ReduceKind::max>, "reduce"},
                                    {"reduce_min", refuses_reduce, nullptr, bind_reduce<ReduceKind::min>, "reduce"},
                                    {"sum_of_squares", refuses_reduce, nullptr, bind_squares, "reduce"}};

}  // namespace

std::span<const KernelEntry> row_entries() { return kEntries; }

}  // namespace systole::cpu
