#include "execute/calibrate/micro_graphs.h"

namespace systole {

Graph matmul_graph(DType dtype, std::int64_t n) {
  Graph g("matmul");
  const Value a = g.input("a", Type(dtype, {n, n})), b = g.input("b", Type(dtype, {n, n}));
  g.output("c", contract(a, b, "mk,kn->mn"));
  return g;
}

Graph kernel_graph() {
  Graph g("kernel");
  const Type type(DType::f32, {4096, 128}), rows(DType::f32, {4096}), vector(DType::f32, {128});
  const LayerNormGrad back = layer_norm_grad(g.input("x", type), g.input("scale", vector), g.input("mean", rows),
                                             g.input("rstd", rows), g.input("g", type));
  g.output("dx", back.dx);
  g.output("dscale", back.dscale);
  g.output("dbias", back.dbias);
  return g;
}

Graph elementary_graph() {
  Graph g("elementary");
  Value y = g.input("x", Type(DType::f32, {kChainElements}));
  for (int i = 0; i < 4; ++i) y = tanh(exp(y));
  g.output("y", y);
  return g;
}

Graph stream_graph(Bytes bytes) {
  Graph g("stream");
  const Type type(DType::f32, {bytes.count() / 12 / 16 * 16});
  g.output("z", add(g.input("x", type), g.input("y", type)));
  return g;
}

Graph update_graph(Bytes bytes) {
  Graph g("update");
  const Type type(DType::f32, {bytes.count() / 28 / 16 * 16}), scalar(DType::f32, {});
  const Adamw step = adamw(g.input("p", type), g.input("g", type), g.input("m", type), g.input("v", type),
                           g.input("scale", scalar), g.input("rate", scalar), g.input("count", Type(DType::i32, {})),
                           g.input("apply", Type(DType::boolean, {})), {});
  g.output("p", step.parameter);
  g.output("m", step.m);
  g.output("v", step.v);
  return g;
}

}  // namespace systole
