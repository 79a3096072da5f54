#include "execute/backends/cpu/contract_gemm.h"

#include <utility>

#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {
namespace {

constexpr std::int64_t kLeastRows = 16;  // of the left operand; products of fewer are oneDNN's

class GemmContraction : public Contraction {
 public:
  GemmContraction(ContractPlan plan, ContractTypes types, const Kernels& kernels, int threads)
      : plan_(std::move(plan)), types_(std::move(types)), kernels_(kernels), threads_(threads) {}

  std::int64_t workspace() const override { return gemm_bytes() + ContractPlaces::packed_bytes(plan_, types_); }
  std::string implementation() const override {
    return types_.a.dtype == DType::bf16 ? "gemm bf16 in f32" : "gemm f32";
  }

  BoundKernel bind(const void* a, const void* b, void* y, void* workspace) const override {
    const ContractPlaces places(plan_, types_, kernels_, threads_, a, b, y,
                                static_cast<char*>(workspace) + gemm_bytes());
    GemmArgs args{};
    args.m = plan_.m;
    args.n = plan_.n;
    args.k = plan_.k;
    args.in = elem(types_.a);
    args.out = elem(types_.y);
    args.c_row = plan_.out.m;
    args.workspace = workspace;
    args.threads = threads_;
    return [this, places, args] { return run(places, args); };
  }

 private:
  std::int64_t gemm_bytes() const {
    const std::int64_t bytes = gemm_workspace(plan_.m, plan_.n, plan_.k, elem(types_.y), threads_);
    return (bytes + 63) / 64 * 64;
  }

  KernelReport run(const ContractPlaces& places, GemmArgs args) const {
    const std::int64_t in = size_of(args.in), out = size_of(args.out);
    KernelReport report{};
    places.pack();
    places.for_each_product([&](const char* left, const char* right, char* y) {
      for (std::int64_t i = 0; i < plan_.batch; ++i) {
        args.a = {left + i * plan_.left.batch * in, plan_.left.m, plan_.left.k};
        args.b = {right + i * plan_.right.batch * in, plan_.right.n, plan_.right.k};
        args.c = y + i * plan_.out.batch * out;
        report.flops += kernels_.gemm(args).flops;
      }
    });
    places.unpack();
    report.bytes_read = (types_.a.bytes() + types_.b.bytes()).count();
    report.bytes_written = types_.y.bytes().count();
    return report;
  }

  const ContractPlan plan_;
  const ContractTypes types_;
  const Kernels& kernels_;
  const int threads_;
};

}  // namespace

bool widens_bf16(DnnlIsa isa) {
  return isa < DnnlIsa::avx512_bf16 || (isa == DnnlIsa::avx512_bf16 && !__builtin_cpu_is("amd"));
}

bool multiplies_by_gemm(const ContractPlan& plan, DType operand) {
  if (operand == DType::bf16) return widens_bf16();
  return plan.right.n == 1 && plan.right.k % 1024 == 0 && plan.m >= kLeastRows && plan.k > 1;
}

std::unique_ptr<Contraction> make_gemm_contraction(ContractPlan plan, ContractTypes types, const Kernels& kernels,
                                                   int threads) {
  return std::make_unique<GemmContraction>(std::move(plan), std::move(types), kernels, threads);
}

}  // namespace systole::cpu
