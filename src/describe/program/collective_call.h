#pragma once
// A collective node of a graph as plain data, and the Collective (ground/mesh) that it is on a mesh.
//
// A node over several mesh axes lists them outermost first: "data,model". Its `parts` is the product of their sizes.
// Part i belongs to rank i of the group, where the last axis varies fastest (Mesh::groups).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"
#include "ground/mesh/collective.h"
#include "ground/mesh/mesh.h"

namespace systole {

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string axis;  // "data" or "data,model"
  std::int64_t parts = 1;
  DType dtype = DType::f32;
  Shape shape;           // of the operand
  int dim = 0;           // all_gather: the dim that grows; reduce_scatter: the dim that is split
  int split_dim = 0;     // all_to_all: the dim that is split
  int concat_dim = 0;    // all_to_all: the dim that grows
  bool maximum = false;  // all_reduce, reduce_scatter: maximum instead of sum
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::direct;  // from the attr `algorithm`
  std::int64_t by = 1;  // collective_permute: receives from the device `by` places before on the axis, cyclically

  bool reduces() const { return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter; }
};

bool is_collective(const GraphNode& node);

// Errors: Failure(invalid) for a node that is not a collective, or an unknown attr `algorithm`.
CollectiveCall collective_call(const Graph& graph, const GraphNode& node);

// A send or receive node between two pipeline stages (ops/transfer.cc).
struct TransferCall {
  bool sends = true;
  std::string axis;
  std::int64_t parts = 1;
  std::int64_t by = 1;  // the peer is `by` places after this device on the axis (receives: before), cyclically
  std::string value;    // the name that both devices use for the value
  DType dtype = DType::f32;
  Shape shape;
  int microbatch = 0;  // from the action that runs it; the node does not know it
  Bytes bytes() const { return bytes_of(dtype, shape); }
};
bool is_transfer(const GraphNode& node);
// Errors: Failure(invalid) for a node that is not a transfer.
TransferCall transfer_call(const Graph& graph, const GraphNode& node);
// The device at the other end. REQUIRES: the mesh has the axis.
std::int64_t peer_of(const TransferCall& call, const Mesh& mesh, std::int64_t device);

// The names in `axis`, outermost first.
std::vector<std::string> axes_of(std::string_view axis);

// The collective over these axes of the mesh: `bytes` of the whole tensor, `grain` of an element.
// Errors: not_found (an axis that the mesh lacks); invalid when the product of the axes' sizes is not `parts`.
Result<Collective> collective_on(const CollectiveCall& call, const Mesh& mesh);

// Sums of bf16 and f16 accumulate in f32 and are rounded once. The rank that adds must therefore receive every
// operand unreduced, which only the algorithm `direct` does; any other is refused.
bool rounds_once(const CollectiveCall& call);

}  // namespace systole
