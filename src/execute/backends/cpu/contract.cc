#include "execute/backends/cpu/contract.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "execute/backends/cpu/contract_plan.h"
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

// A stretch of K by a primitive of its own; all but the first add to what is there.
struct Piece {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  std::int64_t first = 0, size = 0;  // of K
};

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// What all bound calls of a contraction share. Its pieces are made at the first of them: planning needs none.
struct Product {
  ContractPlan plan;
  Type a, b, y;
  const Kernels* kernels;
  int threads;
  const Engine* engine = nullptr;
  std::vector<Piece> pieces;
  std::int64_t scratchpad = 0, at_a = 0, at_b = 0, at_y = 0, workspace = 0;  // bytes
};

// A matrix product needs 2 dims, a batched one 3.
dnnl::memory::desc describe(std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t batch_stride,
                            std::int64_t row_stride, std::int64_t column_stride, DType dtype) {
  if (batch == 1) return dnnl::memory::desc({rows, columns}, data_type(dtype), {row_stride, column_stride});
  return dnnl::memory::desc({batch, rows, columns}, data_type(dtype), {batch_stride, row_stride, column_stride});
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

// One call with its addresses: packs, runs the product once per loop index, unpacks.
class Bound {
 public:
  Bound(const Product& product, const void* a, const void* b, void* y, void* workspace) : product_(product) {
    auto* base = static_cast<char*>(workspace);
    const ContractPlan& plan = product.plan;
    const auto place = [&](const std::optional<Packing>& packing, const Type& type, const void* given, std::int64_t at,
                           CopyArgs& copy) -> const void* {
      if (!packing) return given;
      copy = copy_of(*packing, size_of(type.dtype), true, product.threads);
      copy.src = given;
      copy.dst = base + at;
      return copy.dst;
    };
    a = place(plan.pack_a, product.a, a, product.at_a, copy_a_);
    b = place(plan.pack_b, product.b, b, product.at_b, copy_b_);
    if (plan.pack_y) {
      copy_y_ = copy_of(*plan.pack_y, size_of(product.y.dtype), false, product.threads);
      copy_y_.src = base + product.at_y;
      copy_y_.dst = y;
      y = base + product.at_y;
    }
    left_ = static_cast<const char*>(plan.swapped ? b : a);
    right_ = static_cast<const char*>(plan.swapped ? a : b);
    out_ = static_cast<char*>(y);
    for (const Piece& piece : product.pieces) add_call(piece, base);
  }

  KernelReport run() {
    const ContractPlan& plan = product_.plan;
    use_threads(product_.threads);
    if (plan.pack_a) product_.kernels->copy(copy_a_);
    if (plan.pack_b) product_.kernels->copy(copy_b_);
    std::int64_t products = 1;
    for (const ContractLoop& loop : plan.loops) products *= loop.size;
    const std::int64_t elem = size_of(product_.a.dtype), y_elem = size_of(product_.y.dtype);
    KernelReport report{};
    for (std::int64_t p = 0; p < products; ++p) {
      std::int64_t left = 0, right = 0, out = 0, rest = p;
      for (auto loop = plan.loops.rbegin(); loop != plan.loops.rend(); ++loop) {
        const std::int64_t i = rest % loop->size;
        rest /= loop->size;
        left += i * (plan.swapped ? loop->b : loop->a);
        right += i * (plan.swapped ? loop->a : loop->b);
        out += i * loop->y;
      }
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        const Piece& piece = product_.pieces[i];
        PieceCall& call = calls_[i];
        if (products > 1) {
          call.memories[0].set_data_handle(const_cast<char*>(left_ + (left + piece.first * plan.left.k) * elem));
          call.memories[1].set_data_handle(const_cast<char*>(right_ + (right + piece.first * plan.right.k) * elem));
          call.memories[2].set_data_handle(out_ + out * y_elem);
        }
        const dnnl_status_t status = dnnl_primitive_execute(piece.primitive.get(), product_.engine->stream.get(),
                                                            static_cast<int>(call.args.size()), call.args.data());
        CHECK(status == dnnl_success, "oneDNN's matmul failed with status {}", static_cast<int>(status));
        report.flops += 2 * plan.batch * plan.m * plan.n * piece.size;
      }
    }
    if (plan.pack_y) product_.kernels->copy(copy_y_);
    report.bytes_read = (product_.a.bytes() + product_.b.bytes()).count();
    report.bytes_written = product_.y.bytes().count();
    return report;
  }

 private:
  struct PieceCall {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> args;
  };

  void add_call(const Piece& piece, char* scratchpad) {
    const ContractPlan& plan = product_.plan;
    const dnnl::matmul::primitive_desc& pd = piece.description;
    const std::int64_t elem = size_of(product_.a.dtype);
    PieceCall call;
    call.memories.reserve(4);
    const auto add = [&](int arg, const dnnl::memory::desc& desc, const void* data) {
      call.memories.emplace_back(desc, product_.engine->engine, const_cast<void*>(data));
      call.args.push_back({arg, call.memories.back().get()});
    };
    add(DNNL_ARG_SRC, pd.src_desc(), left_ + piece.first * plan.left.k * elem);
    add(DNNL_ARG_WEIGHTS, pd.weights_desc(), right_ + piece.first * plan.right.k * elem);
    add(DNNL_ARG_DST, pd.dst_desc(), out_);
    add(DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc(), scratchpad);
    calls_.push_back(std::move(call));
  }

  const Product& product_;
  const char *left_, *right_;
  char* out_;
  CopyArgs copy_a_{}, copy_b_{}, copy_y_{};
  std::vector<PieceCall> calls_;
};

// No letters' space: nothing to sum, y is zeros if it has elements at all.
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

// oneDNN 2.6 cuts a long K among its threads, by their number, when the left operand is transposed, the result f32 and
// n too small to share (seen from n = 64 with 2 threads to n = 128 with 8; never with K < 2048): weight gradients of
// narrow layers. Such a sum is cut here instead, by its size alone, so that its bits are the same for any number of
// threads.
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

// Calls visit(first, size) for each stretch of K.
template <typename Visit>
void for_each_stretch(const ContractPlan& plan, DType y, const Visit& visit) {
  const std::int64_t stretch = stretch_of(plan, y);
  for (std::int64_t first = 0; first < plan.k; first += stretch) visit(first, std::min(stretch, plan.k - first));
}

Product plan_product(ContractPlan plan, const Type& a, const Type& b, const Type& y, const Kernels& kernels,
                     int threads) {
  Product product;
  product.a = a;
  product.b = b;
  product.y = y;
  product.kernels = &kernels;
  product.threads = threads;
  for_each_stretch(plan, y.dtype, [&](std::int64_t first, std::int64_t size) {
    const std::int64_t most = matmul_scratch(plan, size, a.dtype, y.dtype, first > 0, dnnl_isa(), threads);
    product.scratchpad = std::max(product.scratchpad, aligned(most));
  });
  product.at_a = product.scratchpad;
  product.at_b = product.at_a + (plan.pack_a ? aligned(a.bytes().count()) : 0);
  product.at_y = product.at_b + (plan.pack_b ? aligned(b.bytes().count()) : 0);
  product.workspace = product.at_y + (plan.pack_y ? aligned(y.bytes().count()) : 0);
  product.plan = std::move(plan);
  return product;
}

std::vector<Piece> make_pieces(const Product& product) {
  use_threads(product.threads);
  std::vector<Piece> pieces;
  for_each_stretch(product.plan, product.y.dtype, [&](std::int64_t first, std::int64_t size) {
    Piece piece = make_piece(product.plan, product.a.dtype, product.y.dtype, first, size, product.engine->engine);
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
  std::int64_t workspace() const override { return product_.workspace; }
  std::string implementation() const override {
    return product_.pieces.empty() ? std::string() : product_.pieces[0].description.impl_info_str();
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
                 systole::to_string(product_.a), systole::to_string(product_.b), e.what())
               .hinted("train.precision: f32 works on every machine that the cpu backend supports"));
    }
  }

  mutable Product product_;  // its pieces are made when they are first bound
  MakeEngine engine_;
};

}  // namespace

struct Contractions::Library {
  const Kernels& kernels;
  int threads;
  std::unique_ptr<Engine> engine;  // made with the first product
  std::map<std::string, std::unique_ptr<Contraction>> made;
};

Contractions::Contractions(const Kernels& kernels, int threads)
    : library_(new Library{kernels, threads, nullptr, {}}) {}
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
  if (bf16 && dnnl_isa() < DnnlIsa::avx512) {
    return error(ErrorKind::unsupported, "{} multiplies bf16 with AVX-512 only, which it does not use here", version())
        .hinted("train.precision: f32 works on every machine that the cpu backend supports");
  }
  ContractPlan plan = plan_contraction(spec, a.shape, b.shape, y.shape);
  if (plan.points == 0) {
    made = std::make_unique<EmptyContraction>(a, b, y, library_->kernels, library_->threads);
    return static_cast<const Contraction*>(made.get());
  }
  const auto engine = [library = library_.get()]() -> const Engine& {
    if (library->engine == nullptr) library->engine = std::make_unique<Engine>();
    return *library->engine;
  };
  made = std::make_unique<MatmulContraction>(
      plan_product(std::move(plan), a, b, y, library_->kernels, library_->threads), engine);
  return static_cast<const Contraction*>(made.get());
}

std::string Contractions::version() { return dnnl_name(); }

std::map<std::string, int> Contractions::implementations() const {
  std::map<std::string, int> count;
  for (const auto& [key, contraction] : library_->made) {
    if (contraction == nullptr) continue;
    if (const std::string served = contraction->implementation(); !served.empty()) ++count[served];
  }
  return count;
}

}  // namespace systole::cpu
