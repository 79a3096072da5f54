#include "describe/program/collective_call.h"

#include <algorithm>

#include "describe/ir/op.h"

namespace systole {
namespace {

int dim_or_none(const GraphNode& node, const char* name) {
  return node.attrs.find(name) == nullptr ? 0 : static_cast<int>(node.attrs.get_int(name));
}

CollectiveAlgorithm algorithm_of(const GraphNode& node) {
  if (node.attrs.find("algorithm") == nullptr) return CollectiveAlgorithm::direct;
  const std::string& name = node.attrs.get_string("algorithm");
  const std::optional<CollectiveAlgorithm> algorithm = collective_algorithm_named(name);
  if (!algorithm) fail(error(ErrorKind::invalid, "{} by an algorithm '{}', which does not exist", node.op->name, name));
  return *algorithm;
}

}  // namespace

bool is_collective(const GraphNode& node) {
  const std::optional<CollectiveKind> kind = collective_named(node.op->name);
  return kind && *kind != CollectiveKind::broadcast;
}

CollectiveCall collective_call(const Graph& graph, const GraphNode& node) {
  if (!is_collective(node)) fail(error(ErrorKind::invalid, "'{}' is no collective", node.op->name));
  const Type& x = graph.type(node.operands[0]);
  CollectiveCall call;
  call.kind = *collective_named(node.op->name);
  call.axis = node.attrs.get_string("axis");
  call.parts = node.attrs.get_int("parts");
  call.dtype = x.dtype;
  call.shape = x.shape;
  call.dim = dim_or_none(node, "dim");
  call.split_dim = dim_or_none(node, "split_dim");
  call.concat_dim = dim_or_none(node, "concat_dim");
  call.maximum = call.reduces() && node.attrs.get_string("kind") == "max";
  call.algorithm = algorithm_of(node);
  if (call.kind == CollectiveKind::collective_permute) call.by = node.attrs.get_int("by");
  return call;
}

bool is_transfer(const GraphNode& node) {
  return node.op->name == std::string_view("send") || node.op->name == std::string_view("receive");
}

TransferCall transfer_call(const Graph& graph, const GraphNode& node) {
  if (!is_transfer(node)) fail(error(ErrorKind::invalid, "'{}' is no transfer", node.op->name));
  const Type& type = graph.type(node.results[0]);
  return {node.op->name == std::string_view("send"),
          node.attrs.get_string("axis"),
          node.attrs.get_int("parts"),
          node.attrs.get_int("by"),
          node.attrs.get_string("value"),
          type.dtype,
          type.shape};
}

std::int64_t peer_of(const TransferCall& call, const Mesh& mesh, std::int64_t device) {
  const std::size_t axis = mesh.find(call.axis).value();
  Coordinates at = mesh.coordinates(device);
  const std::int64_t by = call.sends ? call.by : -call.by;
  at[axis] = ((at[axis] + by) % call.parts + call.parts) % call.parts;
  return mesh.device_at(at);
}

std::vector<std::string> axes_of(std::string_view axis) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= axis.size();) {
    const std::size_t end = std::min(axis.find(',', at), axis.size());
    names.emplace_back(axis.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

Result<Collective> collective_on(const CollectiveCall& call, const Mesh& mesh) {
  Collective collective{call.kind, {}, bytes_of(call.dtype, call.shape), Bytes(size_of(call.dtype)), call.by};
  for (const std::string& axis : axes_of(call.axis))
    collective.axis_sizes.push_back(mesh.axes()[TRY(mesh.find(axis))].size);
  if (collective.num_ranks() != call.parts) {
    return error(ErrorKind::invalid, "{} over '{}' in {} parts, which the mesh {} cuts into {}", name_of(call.kind),
                 call.axis, call.parts, to_string(mesh), collective.num_ranks());
  }
  if (call.kind == CollectiveKind::all_gather) collective.bytes = collective.bytes * call.parts;
  return collective;
}

bool rounds_once(const CollectiveCall& call) {
  return call.reduces() && !call.maximum && (call.dtype == DType::bf16 || call.dtype == DType::f16);
}

}  // namespace systole
