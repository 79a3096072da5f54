#pragma once
// A collective node of a graph as a value: what the four readers of a Program need of it, and which Collective
// (ground/mesh) it is on a mesh.
//
// Several mesh axes on one node are joined by commas, outermost first: "data,model"; its `parts` is the product of
// their sizes, and part i is the rank at place i of the group, the last axis fastest (Mesh::groups).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"
#include "ground/mesh/collective.h"
#include "ground/mesh/mesh.h"

namespace systole {

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string axis;  // "data" or "data,model"
  std::int64_t parts = 1;
  DType dtype = DType::f32;
  Shape shape;           // of the operand
  int dim = 0;           // of all_gather and reduce_scatter: that grows or is cut
  int split_dim = 0;     // of all_to_all: that is cut
  int concat_dim = 0;    // of all_to_all: that grows
  bool maximum = false;  // else the sum; of all_reduce and reduce_scatter
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::direct;  // of the attr `algorithm`; direct without it
  std::int64_t by = 1;  // of collective_permute: from the device so much before on the axis, round the end

  bool reduces() const { return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter; }
};

bool is_collective(const GraphNode& node);

// Errors: Failure(invalid) for a node that is no collective, or an attr `algorithm` that names none.
CollectiveCall collective_call(const Graph& graph, const GraphNode& node);

// A send or receive node between two stages of a pipeline (ops/transfer.cc).
struct TransferCall {
  bool sends = true;
  std::string axis;
  std::int64_t parts = 1;
  std::int64_t by = 1;  // the other device is so much further along the axis (receives: before), round the end
  std::string value;    // what goes, by the name that both have for it
  DType dtype = DType::f32;
  Shape shape;
  int microbatch = 0;  // of the action that runs it; a node knows none
  Bytes bytes() const { return bytes_of(dtype, shape); }
};
bool is_transfer(const GraphNode& node);
// Errors: Failure(invalid) for another node.
TransferCall transfer_call(const Graph& graph, const GraphNode& node);
// The device at the other end, of a mesh that has the axis.
std::int64_t peer_of(const TransferCall& call, const Mesh& mesh, std::int64_t device);

// The names in `axis`, outermost first.
std::vector<std::string> axes_of(std::string_view axis);

// What is sent for it over these axes: `bytes` of the whole tensor, `grain` of an element.
// Errors: not_found (an axis that the mesh lacks); invalid when the axes' sizes do not give `parts`.
Result<Collective> collective_on(const CollectiveCall& call, const Mesh& mesh);

// Sums of bf16 and f16 are kept in f32 and rounded once, so whoever adds must receive all parts themselves: of the
// algorithms only direct does, and any other is refused for them.
bool rounds_once(const CollectiveCall& call);

}  // namespace systole
