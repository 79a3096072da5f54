// embedding: rows of table[v, e] at ids i32[...], and its gradient, a scatter-add into v rows.
//
// An id outside [0, v) gives zeros and adds nothing; a shard of the vocabulary treats ids of other shards this way. The
// scatter adds in the order of the ids, for any number of threads, so that sums are reproducible.
//
// Constraints: C1 table[v, e] of a float type. C2 ids i32[...]. C3 g[..., e] of a float type, with the leading dims of
// the ids. C4 vocab at least 1, dtype a float type.
// Work: embedding counts no FLOPs and reads as many rows of the table as there are ids, at most all. The gradient
// counts one addition per element of g; those of ids outside the table are skipped.
// Sharding: a local rewrite shards the vocabulary: it subtracts the shard's offset from ids; forward, then all_reduce.

#include <algorithm>
#include <vector>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/last_dim.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 2 || call.operand(0).ndim() != 2 || !is_float(call.operand(0).dtype)) {
    constraint("embedding_c1", "embedding takes a table[v, e] of a float type, and ids");
  }
  const Type &table = call.operand(0), &ids = call.operand(1);
  if (ids.dtype != DType::i32) constraint("embedding_c2", "ids are {}, not i32", to_string(ids));
  Type result = ids.with(table.dtype);
  result.add_dim(table.size(1), table.name(1));
  return {result};
}

std::vector<Type> infer_grad(const OpCall& call) {
  if (call.num_operands() != 2 || call.operand(0).dtype != DType::i32) {
    constraint("embedding_c2", "embedding_grad takes i32 ids, and g");
  }
  const Type &ids = call.operand(0), &g = call.operand(1);
  if (!is_float(g.dtype) || g.ndim() != ids.ndim() + 1 ||
      !std::equal(ids.shape.begin(), ids.shape.end(), g.shape.begin())) {
    constraint("embedding_c3", "g {} of ids {}", to_string(g), to_string(ids));
  }
  const std::int64_t vocab = call.attrs.get_int("vocab");
  const DType dtype = call.attrs.get_dtype("dtype");
  if (vocab < 1 || !is_float(dtype)) constraint("embedding_c4", "{} rows of {}", vocab, name_of(dtype));
  return {Type(dtype, {vocab, ops::last_size(g)}, {call.attrs.get_string("vocab_name"), g.name(g.ndim() - 1)})};
}

Gradients gradient(GradientCall& call) {
  const Type& table = call.operand_type(0);
  const Value sum = embedding_grad(call.operand(1), *call.cotangent(0), table.size(0),
                                   ops::statistic_dtype(table.dtype), table.name(0));
  return {cast(sum, table.dtype), std::nullopt};
}

Work work(const OpCall& call, std::span<const Type> results) {
  Work work;
  work.read = call.operand(1).bytes() + std::min(call.operand(0).bytes(), results[0].bytes());
  work.written = results[0].bytes();
  return work;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  Work work = moves(call.operands, results);
  work.flops = call.operand(1).num_elements();
  return work;
}

ShardingRule sharding(const OpCall& call) {
  const std::string ids = ops::letters(call.operand(1).ndim());
  return sharding_rule("vz," + ids + "->" + ids + "z", "", "", "v");
}

ShardingRule sharding_grad(const OpCall& call) {
  const std::string ids = ops::letters(call.operand(0).ndim());
  return sharding_rule(ids + "," + ids + "z->vz", ids, "", "v");
}

Value local_ids(Value ids, Value offset) {
  const Type type = ids.type();  // a copy: the graph grows below
  return sub(ids, broadcast_scalar(cast(offset, DType::i32), type));
}

Graph local_rewrite(const OpCall& local, int, std::string_view axis, std::int64_t parts) {
  Graph graph("embedding");
  const Value table = graph.input("table", local.operand(0)), ids = graph.input("ids", local.operand(1));
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  graph.output("y", all_reduce(embedding(table, local_ids(ids, offset)), axis, parts));
  return graph;
}

Attrs local_attrs(const Attrs& whole, std::span<const Type> local) {
  Attrs attrs = whole;
  attrs.set("vocab", local[0].size(0));
  return attrs;
}

Graph local_rewrite_grad(const OpCall& local, int, std::string_view, std::int64_t) {
  Graph graph("embedding_grad");
  const Value ids = graph.input("ids", local.operand(0)), g = graph.input("g", local.operand(1));
  const Value offset = graph.input("offset", Type(DType::i64, {}));
  graph.output("dtable", embedding_grad(local_ids(ids, offset), g, local.attrs.get_int("vocab"),
                                        local.attrs.get_dtype("dtype"), local.attrs.get_string("vocab_name")));
  return graph;
}

void reference(const ReferenceCall& call) {
  const TensorView &table = call.operands[0], &ids = call.operands[1], &y = call.results[0];
  const std::int64_t v = table.type.size(0), e = table.type.size(1), count = ids.type.num_elements();
  std::int64_t gathered = 0;  // bytes of all rows that are read, repeats included
  for (std::int64_t i = 0; i < count; ++i, gathered += e * size_of(table.type.dtype)) {
    const std::int64_t id = ids.integer(i);
    for (std::int64_t j = 0; j < e; ++j) y.set(i * e + j, id >= 0 && id < v ? table.at(id * e + j) : Scalar(0));
  }
  tally().untouched_bytes += std::max<std::int64_t>(0, table.type.bytes().count() - gathered);
}

void reference_grad(const ReferenceCall& call) {
  const TensorView &ids = call.operands[0], &g = call.operands[1], &dtable = call.results[0];
  const std::int64_t v = dtable.type.size(0), e = dtable.type.size(1), count = ids.type.num_elements();
  std::vector<Scalar> sums(static_cast<std::size_t>(v * e));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = ids.integer(i);
    if (id < 0 || id >= v) {
      tally().skipped_flops += e;
      continue;
    }
    for (std::int64_t j = 0; j < e; ++j) sums[static_cast<std::size_t>(id * e + j)] += g.at(i * e + j);
  }
  for (std::int64_t i = 0; i < v * e; ++i) dtable.set(i, sums[static_cast<std::size_t>(i)]);
}

OpDef make_embedding() {
  OpDef op;
  op.name = "embedding";
  op.summary = "y[...] = table[ids[...]]; an id outside the table gives zeros";
  op.signature = "(table: float[v, e], ids: i32[...]) -> (y: like table[..., e])";
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.local_rewrite = local_rewrite;
  op.reference = reference;
  op.precision = PrecisionRule::f32;
  return op;
}

OpDef make_embedding_grad() {
  OpDef op;
  op.name = "embedding_grad";
  op.summary = "dtable[id] = sum of g at that id, in the order of the ids";
  op.signature = "(ids: i32[...], g: float[..., e]) -> (dtable: dtype[vocab, e])";
  op.attrs = {{"vocab", "int", "rows of the table"},
              {"dtype", "dtype", "type of the result"},
              {"vocab_name", "string", "name of the result's first dim"}};
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.local_rewrite = local_rewrite_grad;
  op.local_attrs = local_attrs;
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  return op;
}

}  // namespace

std::vector<OpDef> ops::embedding_ops() { return {make_embedding(), make_embedding_grad()}; }

Value embedding(Value table, Value ids) {
  const Value operands[] = {table, ids};
  return table.graph->apply("embedding", operands)[0];
}

Value embedding_grad(Value ids, Value g, std::int64_t vocab, DType dtype, const std::string& vocab_name) {
  const Value operands[] = {ids, g};
  return ids.graph->apply("embedding_grad", operands,
                          {{"vocab", vocab}, {"dtype", std::string(name_of(dtype))}, {"vocab_name", vocab_name}})[0];
}

}  // namespace systole
