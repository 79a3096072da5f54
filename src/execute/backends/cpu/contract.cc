#include "execute/backends/cpu/contract.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "execute/backends/cpu/contract_gemm.h"
#include "execute/backends/cpu/contract_places.h"
#include "execute/backends/cpu/contract_scratch.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/kernels/team.h"
#include "ground/tensor/dtype.h"

namespace systole::cpu {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// A range of K with its own primitive; all but the first add to the result.
struct Piece {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  std::int64_t first = 0, size = 0;  // of K
};

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Shared by all bound calls of a contraction. Its pieces are made at the first call: planning needs none.
struct Product {
  ContractPlan plan;
  ContractTypes types;
  const Kernels* kernels;
  int threads;
  const Engine* engine = nullptr;
  std::vector<Piece> pieces;
  std::int64_t scratchpad = 0;  // bytes, at the start of the workspace; packed operands follow
};

// A matrix product needs 2 dims, a batched one 3.
dnnl::memory::desc describe(std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t batch_stride,
                            std::int64_t row_stride, std::int64_t column_stride, DType dtype) {
  if (batch == 1) return dnnl::memory::desc({rows, columns}, data_type(dtype), {row_stride, column_stride});
  return dnnl::memory::desc({batch, rows, columns}, data_type(dtype), {batch_stride, row_stride, column_stride});
}

// One call with its addresses: packs, runs the product once per loop iteration, unpacks.
class Bound {
 public:
  Bound(const Product& product, const void* a, const void* b, void* y, void* workspace)
      : product_(product),
        places_(product.plan, product.types, *product.kernels, product.threads, a, b, y,
                static_cast<char*>(workspace) + product.scratchpad) {
    for (const Piece& piece : product.pieces) add_call(piece, workspace);
  }

  KernelReport run() {
    const ContractPlan& plan = product_.plan;
    use_threads(product_.threads);
    places_.pack();
    const std::int64_t elem = size_of(product_.types.a.dtype);
    KernelReport report{};
    places_.for_each_product([&](const char* left, const char* right, char* out) {
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        const Piece& piece = product_.pieces[i];
        PieceCall& call = calls_[i];
        if (!plan.loops.empty()) {
          call.memories[0].set_data_handle(const_cast<char*>(left + piece.first * plan.left.k * elem));
          call.memories[1].set_data_handle(const_cast<char*>(right + piece.first * plan.right.k * elem));
          call.memories[2].set_data_handle(out);
        }
        const dnnl_status_t status = dnnl_primitive_execute(piece.primitive.get(), product_.engine->stream.get(),
                                                            static_cast<int>(call.args.size()), call.args.data());
        CHECK(status == dnnl_success, "oneDNN's matmul failed with status {}", static_cast<int>(status));
        report.flops += 2 * plan.batch * plan.m * plan.n * piece.size;
      }
    });
    places_.unpack();
    report.bytes_read = (product_.types.a.bytes() + product_.types.b.bytes()).count();
    report.bytes_written = product_.types.y.bytes().count();
    return report;
  }

 private:
  struct PieceCall {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> args;
  };

  void add_call(const Piece& piece, void* scratchpad) {
    const ContractPlan& plan = product_.plan;
    const dnnl::matmul::primitive_desc& pd = piece.description;
    const std::int64_t elem = size_of(product_.types.a.dtype);
    PieceCall call;
    call.memories.reserve(4);
    const auto add = [&](int arg, const dnnl::memory::desc& desc, const void* data) {
      call.memories.emplace_back(desc, product_.engine->engine, const_cast<void*>(data));
      call.args.push_back({arg, call.memories.back().get()});
    };
    add(DNNL_ARG_SRC, pd.src_desc(), places_.left() + piece.first * plan.left.k * elem);
    add(DNNL_ARG_WEIGHTS, pd.weights_desc(), places_.right() + piece.first * plan.right.k * elem);
    add(DNNL_ARG_DST, pd.dst_desc(), places_.out());
    add(DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc(), scratchpad);
    calls_.push_back(std::move(call));
  }

  const Product& product_;
  const ContractPlaces places_;
  std::vector<PieceCall> calls_;
};

// The space of letters is empty: there is nothing to sum, and y, if not empty, is zero.
class EmptyContraction : public Contraction {
 public:
  EmptyContraction(const Type& a, const Type& b, const Type& y, const Kernels& kernels, int threads)
      : a_(a), b_(b), y_(y), kernels_(kernels), threads_(threads) {}
  std::int64_t workspace() const override { return 0; }
  std::string implementation() const override { return "nothing to sum"; }
  BoundKernel bind(const void*, const void*, void* y, void*) const override {
    return [this, y] {
      KernelReport report = kernels_.fill({y, static_cast<int>(size_of(y_.dtype)), 0, y_.num_elements(), threads_});
      report.bytes_read = (a_.bytes() + b_.bytes()).count();
      return report;
    };
  }

 private:
  Type a_, b_, y_;
  const Kernels& kernels_;
  int threads_;
};

// oneDNN 2.6 splits a long K among its threads, by their number, if the left operand is transposed, the result is f32
// and n is too small to share (seen from n = 64 with 2 threads to n = 128 with 8; never with K < 2048): weight
// gradients of narrow layers. Such a sum is split here instead, by its size alone, so that its bits are the same for
// any number of threads.
constexpr std::int64_t kLongSum = 2048, kStretch = 1024, kNarrow = 1024;

std::int64_t stretch_of(const ContractPlan& plan, DType y) {
  const bool cut = plan.left.k != 1 && plan.k >= kLongSum && plan.n <= kNarrow && y == DType::f32;
  return cut ? kStretch : plan.k;
}

Piece make_piece(const ContractPlan& plan, DType dtype, DType y, std::int64_t first, std::int64_t size,
                 const dnnl::engine& engine) {
  const auto left = describe(plan.batch, plan.m, size, plan.left.batch, plan.left.m, plan.left.k, dtype);
  const auto right = describe(plan.batch, size, plan.n, plan.right.batch, plan.right.k, plan.right.n, dtype);
  const auto out = describe(plan.batch, plan.m, plan.n, plan.out.batch, plan.out.m, plan.out.n, y);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (first > 0) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attr.set_post_ops(add);
  }
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(left, right, out), attr, engine);
  return {description, dnnl::matmul(description), first, size};
}

// Calls visit(first, size) for each range of K.
template <typename Visit>
void for_each_stretch(const ContractPlan& plan, DType y, const Visit& visit) {
  const std::int64_t stretch = stretch_of(plan, y);
  for (std::int64_t first = 0; first < plan.k; first += stretch) visit(first, std::min(stretch, plan.k - first));
}

Product plan_product(ContractPlan plan, ContractTypes types, const Kernels& kernels, int threads) {
  Product product;
  product.kernels = &kernels;
  product.threads = threads;
  const auto take = [&, isa = dnnl_isa()](bool adds, std::int64_t size) {
    const std::int64_t most = matmul_scratch(plan, size, types.a.dtype, types.y.dtype, adds, isa, threads);
    product.scratchpad = std::max(product.scratchpad, aligned(most));
  };
  // The first range, those in between, which are all alike, and the last: a batch may make millions of ranges.
  const std::int64_t stretch = stretch_of(plan, types.y.dtype);
  if (plan.k > 0) take(false, std::min(stretch, plan.k));
  if (plan.k > stretch) {
    take(true, std::min(stretch, plan.k - stretch));
    take(true, (plan.k - 1) % stretch + 1);
  }
  product.plan = std::move(plan);
  product.types = std::move(types);
  return product;
}

std::vector<Piece> make_pieces(const Product& product) {
  use_threads(product.threads);
  std::vector<Piece> pieces;
  for_each_stretch(product.plan, product.types.y.dtype, [&](std::int64_t first, std::int64_t size) {
    Piece piece =
        make_piece(product.plan, product.types.a.dtype, product.types.y.dtype, first, size, product.engine->engine);
    const auto wanted = static_cast<std::int64_t>(piece.description.scratchpad_desc().get_size());
    CHECK(wanted <= product.scratchpad,
          "{} wants {} bytes of scratch for {} × {} × {}, more than the {} that the rule of contract_scratch.cc gave",
          dnnl_name(), wanted, product.plan.m, size, product.plan.n, product.scratchpad);
    pieces.push_back(std::move(piece));
  });
  return pieces;
}

class MatmulContraction : public Contraction {
 public:
  using MakeEngine = std::function<const Engine&()>;
  MatmulContraction(Product product, MakeEngine engine) : product_(std::move(product)), engine_(std::move(engine)) {}
  std::int64_t workspace() const override {
    return product_.scratchpad + ContractPlaces::packed_bytes(product_.plan, product_.types);
  }
  std::string implementation() const override {
    return product_.pieces.empty() ? std::string()
                                   : fmt::format("oneDNN {}", product_.pieces[0].description.impl_info_str());
  }
  BoundKernel bind(const void* a, const void* b, void* y, void* workspace) const override {
    if (product_.pieces.empty()) make();
    auto bound = std::make_shared<Bound>(product_, a, b, y, workspace);
    return [bound] { return bound->run(); };
  }

 private:
  void make() const {
    load_dnnl().value();
    try {
      product_.engine = &engine_();
      product_.pieces = make_pieces(product_);
    } catch (const dnnl::error& e) {
      fail(error(ErrorKind::unsupported, "{} has no product of {} and {}: {}", dnnl_name(),
                 systole::to_string(product_.types.a), systole::to_string(product_.types.b), e.what())
               .hinted("train.precision: f32 works on every machine that the cpu backend supports"));
    }
  }

  mutable Product product_;  // its pieces are made at the first bind
  MakeEngine engine_;
};

}  // namespace

struct Contractions::Library {
  const Kernels& kernels;
  int threads;
  bool exact;
  std::unique_ptr<Engine> engine;  // made at the first product
  std::map<std::string, std::unique_ptr<Contraction>> made;
};

Contractions::Contractions(const Kernels& kernels, int threads, bool exact)
    : library_(new Library{kernels, threads, exact, nullptr, {}}) {}
Contractions::~Contractions() = default;

Result<const Contraction*> Contractions::get(const std::string& spec, const Type& a, const Type& b, const Type& y) {
  const std::string key = spec + " " + systole::to_string(Type(a.dtype, a.shape)) +
                          systole::to_string(Type(b.dtype, b.shape)) + systole::to_string(Type(y.dtype, y.shape));
  std::unique_ptr<Contraction>& made = library_->made[key];
  if (made != nullptr) return static_cast<const Contraction*>(made.get());
  const bool f32 = a.dtype == DType::f32 && y.dtype == DType::f32;
  const bool bf16 = a.dtype == DType::bf16 && (y.dtype == DType::bf16 || y.dtype == DType::f32);
  if (b.dtype != a.dtype || !(f32 || bf16)) {
    return error(ErrorKind::unsupported, "cpu contracts f32 to f32 and bf16 to bf16 or f32, not {} and {} to {}",
                 systole::name_of(a.dtype), systole::name_of(b.dtype), systole::name_of(y.dtype));
  }
  ContractPlan plan = plan_contraction(spec, a.shape, b.shape, y.shape);
  if (plan.points == 0) {
    made = std::make_unique<EmptyContraction>(a, b, y, library_->kernels, library_->threads);
    return static_cast<const Contraction*>(made.get());
  }
  if (multiplies_by_gemm(plan, a.dtype) || (library_->exact && f32)) {
    made = make_gemm_contraction(std::move(plan), {a, b, y}, library_->kernels, library_->threads);
    return static_cast<const Contraction*>(made.get());
  }
  const auto engine = [library = library_.get()]() -> const Engine& {
    if (library->engine == nullptr) library->engine = std::make_unique<Engine>();
    return *library->engine;
  };
  made = std::make_unique<MatmulContraction>(
      plan_product(std::move(plan), {a, b, y}, library_->kernels, library_->exact ? 1 : library_->threads), engine);
  return static_cast<const Contraction*>(made.get());
}

std::vector<DType> Contractions::library_products(bool exact) {
  if (exact) return widens_bf16() ? std::vector<DType>() : std::vector{DType::bf16};
  return widens_bf16() ? std::vector{DType::f32} : std::vector{DType::f32, DType::bf16};
}

std::map<std::string, int> Contractions::implementations() const {
  std::map<std::string, int> count;
  for (const auto& [key, contraction] : library_->made) {
    if (contraction == nullptr) continue;
    if (const std::string served = contraction->implementation(); !served.empty()) ++count[served];
  }
  return count;
}

}  // namespace systole::cpu
