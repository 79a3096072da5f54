// Row lookups, single and batched, expert routing, rotary positions, random bits and optimizers.

#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {
namespace {

BoundKernel bind_embedding(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& table = info.operand(0);
  return call(shared.kernels.embedding,
              EmbeddingArgs{places.operand(0), places.operand<std::int32_t>(1), places.result(0), elem(table),
                            info.operand(1).num_elements(), table.size(0), table.size(1), shared.threads});
}

std::string refuses_sums_but_f32(const NodeInfo& info, Shared&) {
  return info.result(0).dtype == DType::f32
             ? std::string()
             : fmt::format("sums of type {}: cpu adds rows in f32", systole::name_of(info.result(0).dtype));
}
BoundKernel bind_embedding_grad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& table = info.result(0);
  return call(shared.kernels.embedding_grad,
              EmbeddingGradArgs{places.operand<std::int32_t>(0), places.operand(1), places.result<float>(0),
                                elem(info.operand(1)), info.operand(0).num_elements(), table.size(0), table.size(1),
                                shared.threads});
}

// One kernel call per batch entry, in sequence.
template <typename Args>
BoundKernel call_each(KernelReport (*kernel)(const Args&), const Args& first, std::int64_t batches,
                      void (*next)(Args&)) {
  return [=] {
    KernelReport total{};
    Args args = first;
    for (std::int64_t i = 0; i < batches; ++i, next(args)) {
      const KernelReport one = kernel(args);
      total.flops += one.flops;
      total.skipped_flops += one.skipped_flops;
      total.bytes_read += one.bytes_read;
      total.bytes_written += one.bytes_written;
    }
    return total;
  };
}

// Number of batch entries of x[B…, n, e].
std::int64_t batches_of(const Type& x) { return num_elements(Shape(x.shape.begin(), x.shape.end() - 2)); }

BoundKernel bind_gather_rows(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.operand(0);
  const std::int64_t batches = batches_of(x), each = batches == 0 ? 0 : info.operand(1).num_elements() / batches;
  const EmbeddingArgs first{places.operand(0),
                            places.operand<std::int32_t>(1),
                            places.result(0),
                            elem(x),
                            each,
                            x.size(x.ndim() - 2),
                            x.size(x.ndim() - 1),
                            shared.threads};
  return call_each(
      shared.kernels.embedding, first, batches, +[](EmbeddingArgs& args) {
        const std::int64_t row = args.width * size_of(args.elem);
        args.table = static_cast<const std::byte*>(args.table) + args.vocab * row;
        args.ids += args.num_ids;
        args.y = static_cast<std::byte*>(args.y) + args.num_ids * row;
      });
}

BoundKernel bind_scatter_rows(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.result(0);
  const std::int64_t batches = batches_of(x), each = batches == 0 ? 0 : info.operand(1).num_elements() / batches;
  const EmbeddingGradArgs first{places.operand<std::int32_t>(1),
                                places.operand(0),
                                places.result<float>(0),
                                elem(info.operand(0)),
                                each,
                                x.size(x.ndim() - 2),
                                x.size(x.ndim() - 1),
                                shared.threads};
  return call_each(
      shared.kernels.embedding_grad, first, batches, +[](EmbeddingGradArgs& args) {
        args.ids += args.num_ids;
        args.g = static_cast<const std::byte*>(args.g) + args.num_ids * args.width * size_of(args.elem);
        args.table += args.vocab * args.width;
      });
}

BoundKernel bind_top_k(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.operand(0);
  const std::int64_t n = x.shape.back();
  return call(shared.kernels.top_k,
              TopKArgs{places.operand(0), places.result(0), places.result<std::int32_t>(1), elem(x),
                       n == 0 ? 0 : x.num_elements() / n, n, info.attrs().get_int("k"), shared.threads});
}

BoundKernel bind_route(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type &chosen = info.operand(0), &choice = info.result(0);
  return call(shared.kernels.route,
              RouteArgs{places.operand<std::int32_t>(0), places.result<std::int32_t>(0), places.result<std::int32_t>(1),
                        places.result<std::int32_t>(2), chosen.size(0), chosen.size(1), chosen.size(2), choice.size(1),
                        choice.size(2), shared.threads});
}

std::string refuses_rotary(const NodeInfo& info, Shared&) {
  const std::int64_t d = info.operand(0).size(3);
  return d <= kMaxRotaryWidth ? std::string() : fmt::format("heads of {}, wider than {}", d, kMaxRotaryWidth);
}
RotaryStretch stretch_of(const Attrs& attrs) {
  if (attrs.find("factor") == nullptr) return {};
  return {attrs.get_double("factor"), attrs.get_double("low_freq_factor"), attrs.get_double("high_freq_factor"),
          attrs.get_double("original_context")};
}
BoundKernel bind_rotary(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.operand(0);
  return call(shared.kernels.rotary,
              RotaryArgs{places.operand(0), places.operand<std::int32_t>(1), places.result(0), elem(x),
                         x.size(0) * x.size(1), x.size(2), x.size(3), info.attrs().get_double("theta"),
                         stretch_of(info.attrs()), info.attrs().flag("inverse"), shared.threads});
}

RandomPlace place_of(const NodeInfo& info, const Places& places) {
  const Type& x = info.operand(0);
  const std::int64_t per_row = x.shape.empty() ? 0 : num_elements(Shape(x.shape.begin() + 1, x.shape.end()));
  const auto key = [&](int i) { return places.operand<std::int64_t>(i); };
  return {key(1), key(2), key(3), key(4), per_row};
}
TokenPlaces tokens_of(const NodeInfo& info, const Places& places) {
  if (info.attrs().find("length") == nullptr) return {};
  const Shape& shape = info.operand(0).shape;
  return {places.operand<std::int32_t>(5), shape[1], info.attrs().get_int("length"),
          num_elements(Shape(shape.begin() + 2, shape.end()))};
}
BoundKernel bind_dropout(const NodeInfo& info, const Places& places, Shared& shared) {
  return call(
      shared.kernels.dropout,
      DropoutArgs{places.operand(0), places.result(0), elem(info.operand(0)), info.operand(0).num_elements(),
                  place_of(info, places), info.attrs().get_double("rate"), shared.threads, tokens_of(info, places)});
}
BoundKernel bind_stochastic_round(const NodeInfo& info, const Places& places, Shared& shared) {
  return call(shared.kernels.stochastic_round,
              StochasticRoundArgs{places.operand(0), places.result(0), elem(info.operand(0)),
                                  info.operand(0).num_elements(), place_of(info, places), shared.threads});
}

std::string refuses_adamw(const NodeInfo& info, Shared&) {
  return info.operand(2).dtype == info.operand(3).dtype ? std::string() : "moments of two types";
}
BoundKernel bind_adamw(const NodeInfo& info, const Places& places, Shared& shared) {
  const Attrs& a = info.attrs();
  AdamwArgs args{};
  args.p = places.operand(0);
  args.g = places.operand(1);
  args.m = places.operand(2);
  args.v = places.operand(3);
  args.p_out = places.result(0);
  args.m_out = places.result(1);
  args.v_out = places.result(2);
  args.p_elem = elem(info.operand(0));
  args.g_elem = elem(info.operand(1));
  args.m_elem = elem(info.operand(2));
  args.v_elem = elem(info.operand(3));
  args.n = info.operand(0).num_elements();
  args.scale = places.operand<float>(4);
  args.rate = places.operand<float>(5);
  args.count = places.operand<std::int32_t>(6);
  args.apply = places.operand<std::uint8_t>(7);
  args.beta1 = a.get_double("beta1");
  args.beta2 = a.get_double("beta2");
  args.eps = a.get_double("eps");
  args.weight_decay = a.get_double("weight_decay");
  args.threads = shared.threads;
  return call(shared.kernels.adamw, args);
}

BoundKernel bind_sgd(const NodeInfo& info, const Places& places, Shared& shared) {
  const bool momentum = info.attrs().get_double("momentum") != 0;
  const int first = momentum ? 3 : 2;
  SgdArgs args{};
  args.p = places.operand(0);
  args.g = places.operand(1);
  args.p_out = places.result(0);
  args.p_elem = elem(info.operand(0));
  args.g_elem = elem(info.operand(1));
  args.m_elem = Elem::f32;
  if (momentum) {
    args.m = places.operand(2);
    args.m_out = places.result(1);
    args.m_elem = elem(info.operand(2));
  }
  args.n = info.operand(0).num_elements();
  args.scale = places.operand<float>(first);
  args.rate = places.operand<float>(first + 1);
  args.apply = places.operand<std::uint8_t>(first + 2);
  args.momentum = info.attrs().get_double("momentum");
  args.weight_decay = info.attrs().get_double("weight_decay");
  args.threads = shared.threads;
  return call(shared.kernels.sgd, args);
}

constexpr KernelEntry kEntries[] = {{"embedding", accepts, nullptr, bind_embedding, "embedding"},
                                    {"embedding_grad", refuses_sums_but_f32, nullptr, bind_embedding_grad, "embedding"},
                                    {"gather_rows", accepts, nullptr, bind_gather_rows, "embedding"},
                                    {"scatter_rows", refuses_sums_but_f32, nullptr, bind_scatter_rows, "embedding"},
                                    {"top_k", accepts, nullptr, bind_top_k, "routing"},
                                    {"route", accepts, nullptr, bind_route, "routing"},
                                    {"rotary", refuses_rotary, nullptr, bind_rotary, "rotary"},
                                    {"dropout", accepts, nullptr, bind_dropout, "random"},
                                    {"stochastic_round", accepts, nullptr, bind_stochastic_round, "random"},
                                    {"adamw", refuses_adamw, nullptr, bind_adamw, "optimizer"},
                                    {"sgd", accepts, nullptr, bind_sgd, "optimizer"}};

}  // namespace

std::span<const KernelEntry> lookup_entries() { return kEntries; }

}  // namespace systole::cpu
