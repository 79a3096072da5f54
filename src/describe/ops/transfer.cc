// send, receive: point-to-point transfers between pipeline stages, over a mesh axis of `parts` devices. A device sends
// to the one whose coordinate on the axis is `by` larger, cyclically, and receives from the one whose coordinate is
// `by` smaller; all other coordinates are equal. Messages between two devices arrive in the order of sending. A message
// names its value and microbatch; a receiver that expects another refuses it.
//
//   send      y = x, in place; x goes to the other device
//   receive   y = the value from the other device; its type is in the attributes
//
// Unlike a collective, a transfer is in the Program of one stage only. Its counterpart is in another stage's Program;
// the schedules of the stages match them (partition/pipeline.h).
// Constraints: transfer C1 operands, an axis with a name, parts ≥ 2 and a `by` that leads to another device. C2 the
// attributes of receive give a type (type_attrs.h).
// Work: none; a transport moves the bytes. The reference runs one device and refuses both.

#include <array>

#include "describe/ir/op.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/type_attrs.h"

namespace systole {
namespace {

void check_transfer(const OpCall& call, int operands) {
  if (call.num_operands() != operands)
    constraint("transfer_c1", "{} takes {} operands, got {}", call.op.name, operands, call.num_operands());
  const std::int64_t parts = call.attrs.get_int("parts"), by = call.attrs.get_int("by");
  if (call.attrs.get_string("axis").empty() || parts < 2 || by % parts == 0) {
    constraint("transfer_c1", "{} over axis '{}' of {} parts by {}", call.op.name, call.attrs.get_string("axis"), parts,
               by);
  }
}

OpDef transfer(const char* name, const char* summary, const char* signature) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.signature = signature;
  op.attrs = {{"axis", "string", "of the mesh"},
              {"parts", "int", "devices along the axis"},
              {"by", "int", "how much further along the axis it goes, round the end"},
              {"value", "string", "what goes, by a name that both devices have for it"}};
  op.work = [](const OpCall&, std::span<const Type>) { return Work(); };
  op.reference = [name](const ReferenceCall& call) {
    fail(error(ErrorKind::unsupported, "{} over '{}' of {} parts needs as many devices; the reference evaluator is one",
               name, call.attrs.get_string("axis"), call.attrs.get_int("parts")));
  };
  return op;
}

Attrs transfer_attrs(std::string_view axis, std::int64_t parts, std::int64_t by, std::string_view value) {
  return {{"axis", std::string(axis)}, {"parts", parts}, {"by", by}, {"value", std::string(value)}};
}

}  // namespace

namespace ops {

std::vector<OpDef> transfer_ops() {
  OpDef send = transfer("send", "y = x, which also goes to the device `by` further along the axis",
                        "(x: any[...]) -> (y: x's type)");
  send.infer = [](const OpCall& call) -> std::vector<Type> {
    check_transfer(call, 1);
    return {call.operand(0)};
  };
  send.in_place = {{0, 0}};
  send.sharding = [](const OpCall& call) {
    const std::vector<int> whole(call.operand(0).shape.size(), -1);
    return ShardingRule{{}, {whole}, {whole}};
  };
  OpDef receive =
      transfer("receive", "y = what the device `by` before this one on the axis sends", "() -> (y: any[...])");
  const std::vector<OpAttr> type = shape_attrs();
  receive.attrs.push_back({"dtype", "dtype", "of the result"});
  receive.attrs.insert(receive.attrs.end(), type.begin(), type.end());
  receive.attrs.push_back({"number", "int", "among those of its graph: each is another"});
  receive.infer = [](const OpCall& call) -> std::vector<Type> {
    check_transfer(call, 0);
    return {shaped_as(call.attrs, call.attrs.get_dtype("dtype"), "transfer_c2")};
  };
  receive.sharding = [](const OpCall& call) {
    return ShardingRule{{}, {}, {std::vector<int>(call.attrs.get_ints("shape").size(), -1)}};
  };
  return {send, receive};
}

}  // namespace ops

Value send(Value x, std::string_view axis, std::int64_t parts, std::int64_t by, std::string_view value) {
  return x.graph->apply("send", std::array{x}, transfer_attrs(axis, parts, by, value))[0];
}

Value receive(Graph& graph, const Type& type, std::string_view axis, std::int64_t parts, std::int64_t by,
              std::string_view value) {
  Attrs attrs = transfer_attrs(axis, parts, by, value);
  ops::set_type(attrs, type);
  attrs.set("number", static_cast<std::int64_t>(graph.nodes().size()));
  return graph.apply("receive", {}, std::move(attrs))[0];
}

}  // namespace systole
