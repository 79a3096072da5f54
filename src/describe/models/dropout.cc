#include "describe/models/dropout.h"

namespace systole {

DropoutKey dropout_inputs(Graph& graph) {
  const Type scalar(DType::i64, {});
  const Value seed = graph.input("seed", scalar), step = graph.input("step", scalar);
  return {seed, step, graph.input("row", scalar)};
}

Value drop_at(Value x, const DropoutKey& key, Value site, double rate) {
  return dropout(x, RandomKey{key.seed, key.step, site, key.row}, rate);
}

}  // namespace systole
