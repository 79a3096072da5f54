#include "execute/calibrate/measured_kernels.h"

namespace systole {
namespace {

Type attention_type(DType dtype, std::int64_t heads) {
  return Type(dtype, {8, 256, heads, 256 / heads}, {"batch", "seq", "heads", "head"});
}

constexpr NamedFunction kFunctions[] = {{"exp", &exp},
                                        {"log", &log},
                                        {"tanh", &tanh},
                                        {"sigmoid", &sigmoid},
                                        {"gelu", &gelu},
                                        {"gelu_tanh", &gelu_tanh},
                                        {"silu", &silu},
                                        {"sqrt", &sqrt},
                                        {"rsqrt", &rsqrt},
                                        {"gelu_grad", [](Value x) { return gelu_grad(x, x); }},
                                        {"silu_grad", [](Value x) { return silu_grad(x, x); }},
                                        {"gelu_tanh_grad", [](Value x) { return gelu_tanh_grad(x, x); }}};

constexpr NamedKernel kKernels[] = {
    {"layer_norm",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const Type vector(DType::f32, {n});
       const LayerNorm made = layer_norm(g.input(name("x"), Type(dtype, {rows, n})), g.input(name("scale"), vector),
                                         g.input(name("bias"), vector), 1e-5);
       g.output(name("y"), made.y);
       g.output(name("mean"), made.mean);
       g.output(name("rstd"), made.rstd);
     },
     true},
    {"layer_norm_grad",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const Type type(dtype, {rows, n}), row(DType::f32, {rows});
       const LayerNormGrad made =
           layer_norm_grad(g.input(name("x"), type), g.input(name("scale"), Type(DType::f32, {n})),
                           g.input(name("mean"), row), g.input(name("rstd"), row), g.input(name("g"), type));
       g.output(name("dx"), made.dx);
       g.output(name("dscale"), made.dscale);
       g.output(name("dbias"), made.dbias);
     },
     true},
    {"rms_norm",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const RmsNorm made =
           rms_norm(g.input(name("x"), Type(dtype, {rows, n})), g.input(name("scale"), Type(DType::f32, {n})), 1e-5);
       g.output(name("y"), made.y);
       g.output(name("rstd"), made.rstd);
     },
     true},
    {"rms_norm_grad",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const Type type(dtype, {rows, n});
       const RmsNormGrad made =
           rms_norm_grad(g.input(name("x"), type), g.input(name("scale"), Type(DType::f32, {n})),
                         g.input(name("rstd"), Type(DType::f32, {rows})), g.input(name("g"), type));
       g.output(name("dx"), made.dx);
       g.output(name("dscale"), made.dscale);
     },
     true},
    {"cross_entropy",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const CrossEntropy made =
           cross_entropy(g.input(name("x"), Type(dtype, {rows, n})), g.input(name("labels"), Type(DType::i32, {rows})));
       g.output(name("loss"), made.loss);
       g.output(name("lse"), made.lse);
     },
     true},
    {"cross_entropy_grad",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const Type row(DType::f32, {rows});
       g.output(name("x"), cross_entropy_grad(g.input(name("x"), Type(dtype, {rows, n})),
                                              g.input(name("labels"), Type(DType::i32, {rows})),
                                              g.input(name("lse"), row), g.input(name("g"), row)));
     },
     true},
    {"reduce_sum",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const int dims[] = {0};
       g.output(name("y"), reduce_sum(g.input(name("x"), Type(dtype, {rows, n})), dims));
     },
     true},
    {"sum_of_squares",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       g.output(name("y"), sum_of_squares(g.input(name("x"), Type(dtype, {rows * n}))));
     },
     false},
    {"rotary",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       g.output(name("y"), rotary(g.input(name("x"), Type(dtype, {1, rows, 1, n})),
                                  g.input(name("at"), Type(DType::i32, {1, rows})), {}));
     },
     false},
    {"dropout",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       const Type number(DType::i64, {});
       const RandomKey key{g.input(name("seed"), number), g.input(name("step"), number), g.input(name("site"), number),
                           g.input(name("row"), number)};
       g.output(name("y"), dropout(g.input(name("x"), Type(dtype, {rows, n})), key, 0.1));
     },
     false},
    {"embedding",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       g.output(name("y"), embedding(g.input(name("table"), Type(dtype, {64, n})),
                                     g.input(name("ids"), Type(DType::i32, {rows}))));
     },
     true},
    {"embedding_grad",
     [](Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n) {
       g.output(name("y"), embedding_grad(g.input(name("ids"), Type(DType::i32, {rows})),
                                          g.input(name("g"), Type(dtype, {rows, n})), 64, DType::f32, "vocab"));
     },
     true},
};

}  // namespace

void put_product(Graph& g, const Named& name, DType dtype, std::string_view layout, std::int64_t rows, std::int64_t k,
                 std::int64_t n) {
  const Value x = g.input(name("x"), Type(dtype, {rows, k}));
  if (layout == "nn") {
    g.output(name("y"), contract(x, g.input(name("w"), Type(dtype, {k, n})), "mk,kn->mn"));
  } else if (layout == "nt") {
    g.output(name("y"), contract(x, g.input(name("w"), Type(dtype, {n, k})), "mk,nk->mn"));
  } else {
    g.output(name("y"), contract(x, g.input(name("d"), Type(dtype, {rows, n})), "mk,mn->kn", DType::f32));
  }
}

void put_attention(Graph& g, const Named& name, DType dtype, std::int64_t heads) {
  const Type type = attention_type(dtype, heads);
  const Attention forward = attention(g.input(name("q"), type), g.input(name("k"), type), g.input(name("v"), type), {});
  g.output(name("o"), forward.o);
  g.output(name("lse"), forward.lse);
}

void put_attention_grad(Graph& g, const Named& name, DType dtype, std::int64_t heads) {
  const Type type = attention_type(dtype, heads);
  const Value q = g.input(name("q"), type), k = g.input(name("k"), type), v = g.input(name("v"), type),
              o = g.input(name("o"), type);
  const Value lse = g.input(name("lse"), Type(DType::f32, {8, heads, 256}, {"batch", "heads", "seq"}));
  const AttentionGrad back = attention_grad(q, k, v, o, lse, g.input(name("d"), type), {});
  g.output(name("dq"), back.dq);
  g.output(name("dk"), back.dk);
  g.output(name("dv"), back.dv);
}

void put_sums(Graph& g, const Named& name, DType dtype, int steps, std::int64_t elements) {
  const Value x = g.input(name("x"), Type(dtype, {elements}));
  Value y = x;
  for (int i = 0; i < steps; ++i) y = i % 2 == 0 ? mul(y, x) : add(y, x);
  g.output(name("y"), y);
}

std::span<const NamedFunction> measured_functions() { return kFunctions; }
std::span<const NamedKernel> measured_kernels() { return kKernels; }

}  // namespace systole
