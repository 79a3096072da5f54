#include "describe/ops/testing/fake_mesh.h"

#include <cstring>
#include <utility>

#include "describe/ops/testing/op_case.h"

namespace systole {
namespace {

// A tensor as [outer, size of dim, inner bytes].
struct Blocks {
  std::size_t outer = 1, size, inner;
  Blocks(const HostTensor& tensor, int dim)
      : size(static_cast<std::size_t>(tensor.shape()[static_cast<std::size_t>(dim)])),
        inner(static_cast<std::size_t>(size_of(tensor.dtype()))) {
    for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
      if (static_cast<int>(i) < dim) outer *= static_cast<std::size_t>(tensor.shape()[i]);
      if (static_cast<int>(i) > dim) inner *= static_cast<std::size_t>(tensor.shape()[i]);
    }
  }
};

HostTensor largest(std::span<const HostTensor> tensors) {
  HostTensor result = tensors[0];
  for (const HostTensor& tensor : tensors) {
    for (std::int64_t i = 0; i < result.size(); ++i)
      result.set(i, max(Scalar(result.at(i)), Scalar(tensor.at(i))).value());
  }
  return result;
}

// The result of a collective on rank `me`. group[i] is the operand of rank i of the axis.
HostTensor play(const GraphNode& node, std::span<const HostTensor> group, std::int64_t me) {
  const std::string_view op = node.op->name;
  const std::int64_t parts = static_cast<std::int64_t>(group.size());
  auto dim = [&](const char* name) { return static_cast<int>(node.attrs.get_int(name)); };
  auto combined = [&] { return node.attrs.get_string("kind") == "max" ? largest(group) : summed(group); };
  if (op == "all_reduce") return combined();
  if (op == "all_gather") return joined(group, dim("dim"));
  if (op == "reduce_scatter") return part_of(combined(), dim("dim"), me, parts);
  if (op == "collective_permute")
    return group[static_cast<std::size_t>(((me - node.attrs.get_int("by")) % parts + parts) % parts)];
  CHECK(op == "all_to_all", "{} is no collective", op);
  std::vector<HostTensor> received;
  for (const HostTensor& tensor : group) received.push_back(part_of(tensor, dim("split_dim"), me, parts));
  return joined(received, dim("concat_dim"));
}

class Lockstep {
 public:
  Lockstep(const FakeMesh& mesh, const Graph& graph)
      : mesh_(mesh),
        graph_(graph),
        values_(static_cast<std::size_t>(mesh.num_ranks()),
                std::vector<HostTensor>(static_cast<std::size_t>(graph.num_values()))) {}

  HostTensor& value(std::int64_t rank, ValueId id) {
    return values_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(id.index)];
  }

  void step(const GraphNode& node) {
    if (node.op->name == std::string_view("repeat")) return repeat(node);
    CHECK(node.regions.empty(), "{} has regions", node.op->name);
    if (node.attrs.find("axis") != nullptr) return collective(node);
    for (std::int64_t rank = 0; rank < mesh_.num_ranks(); ++rank) {
      std::vector<HostTensor> operands;
      for (const ValueId id : node.operands) operands.push_back(value(rank, id));
      std::vector<HostTensor> results = run_reference(*node.op, node.attrs, operands);
      for (std::size_t i = 0; i < results.size(); ++i) value(rank, node.results[i]) = std::move(results[i]);
    }
  }

 private:
  // Runs the iterations as in ops/repeat.cc.
  void repeat(const GraphNode& node) {
    const std::int64_t count = node.attrs.get_int("count");
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    const auto stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    const auto ranks = static_cast<std::size_t>(mesh_.num_ranks());
    PerRank in(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const ValueId id : node.operands) in[rank].push_back(value(static_cast<std::int64_t>(rank), id));
      for (const ValueId id : node.results) {
        const Type& type = graph_.type(id);
        value(static_cast<std::int64_t>(rank), id) = HostTensor(type.dtype, type.shape);
      }
    }
    for (std::int64_t step = 0; step < count; ++step) {
      const std::int64_t index = node.attrs.get_bool("reverse") ? count - 1 - step : step;
      PerRank slices = in;
      for (std::vector<HostTensor>& mine : slices) {
        for (std::size_t i = carries; i < carries + stacked; ++i) {
          const HostTensor slice = part_of(mine[i], 0, index, count);
          mine[i] = HostTensor(slice.dtype(), Shape(slice.shape().begin() + 1, slice.shape().end()));
          std::memcpy(mine[i].bytes().data(), slice.bytes().data(), slice.bytes().size());
        }
      }
      PerRank out = evaluate_on(mesh_, node.regions[0], slices);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t r = 0; r < out[rank].size(); ++r) {
          HostTensor& made = value(static_cast<std::int64_t>(rank), node.results[r]);
          if (r < carries) {
            in[rank][r] = made = std::move(out[rank][r]);
          } else {
            const std::span<const std::byte> bytes = std::as_const(out[rank][r]).bytes();
            std::memcpy(made.bytes().data() + static_cast<std::size_t>(index) * bytes.size(), bytes.data(),
                        bytes.size());
          }
        }
      }
    }
  }

  void collective(const GraphNode& node) {
    const std::size_t axis = mesh_.axis_named(node.attrs.get_string("axis"));
    if (node.attrs.get_int("parts") != mesh_.sizes[axis]) {
      fail(error(ErrorKind::invalid, "{} in {} parts over axis '{}' of {}", node.op->name, node.attrs.get_int("parts"),
                 mesh_.axes[axis], mesh_.sizes[axis]));
    }
    for (std::int64_t rank = 0; rank < mesh_.num_ranks(); ++rank) {
      std::vector<HostTensor> group;
      for (std::int64_t i = 0; i < mesh_.sizes[axis]; ++i)
        group.push_back(value(mesh_.moved(rank, axis, i), node.operands[0]));
      HostTensor result = play(node, group, mesh_.coordinate(rank, axis));
      const Type& type = graph_.type(node.results[0]);
      CHECK(type_of(result) == type, "{} gives {}, inferred {}", node.op->name, to_string(type_of(result)),
            to_string(type));
      value(rank, node.results[0]) = std::move(result);
    }
  }

  const FakeMesh& mesh_;
  const Graph& graph_;
  PerRank values_;
};

}  // namespace

std::int64_t FakeMesh::num_ranks() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

std::int64_t FakeMesh::coordinate(std::int64_t rank, std::size_t axis) const {
  for (std::size_t inner = axis + 1; inner < sizes.size(); ++inner) rank /= sizes[inner];
  return rank % sizes[axis];
}

std::int64_t FakeMesh::moved(std::int64_t rank, std::size_t axis, std::int64_t to) const {
  std::int64_t stride = 1;
  for (std::size_t inner = axis + 1; inner < sizes.size(); ++inner) stride *= sizes[inner];
  return rank + (to - coordinate(rank, axis)) * stride;
}

std::size_t FakeMesh::axis_named(std::string_view name) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == name) return i;
  }
  fail(error(ErrorKind::not_found, "the mesh has no axis '{}'", name));
}

PerRank evaluate_on(const FakeMesh& mesh, const Graph& graph, const PerRank& inputs) {
  CHECK(static_cast<std::int64_t>(inputs.size()) == mesh.num_ranks(), "inputs for {} of {} ranks", inputs.size(),
        mesh.num_ranks());
  Lockstep run(mesh, graph);
  for (std::int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    const std::vector<HostTensor>& mine = inputs[static_cast<std::size_t>(rank)];
    CHECK(mine.size() == graph.inputs().size(), "{} inputs for {}", mine.size(), graph.inputs().size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const ValueId id = graph.inputs()[i].value;
      CHECK(type_of(mine[i]) == graph.type(id), "input '{}' is {}, not {}", graph.inputs()[i].name,
            to_string(type_of(mine[i])), to_string(graph.type(id)));
      run.value(rank, id) = mine[i];
    }
  }
  for (const GraphNode& node : graph.nodes()) run.step(node);
  PerRank outputs(inputs.size());
  for (std::int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    for (const GraphOutput& output : graph.outputs())
      outputs[static_cast<std::size_t>(rank)].push_back(run.value(rank, output.value));
  }
  return outputs;
}

HostTensor part_of(const HostTensor& tensor, int dim, std::int64_t index, std::int64_t parts) {
  Shape shape = tensor.shape();
  std::int64_t& size = shape[static_cast<std::size_t>(dim)];
  CHECK(size % parts == 0, "{} in {} parts", size, parts);
  size /= parts;
  HostTensor part(tensor.dtype(), shape);
  const Blocks whole(tensor, dim), own(part, dim);
  const std::size_t bytes = own.size * own.inner;
  for (std::size_t i = 0; i < own.outer && bytes > 0; ++i) {
    std::memcpy(part.bytes().data() + i * bytes,
                tensor.bytes().data() + (i * whole.size + static_cast<std::size_t>(index) * own.size) * whole.inner,
                bytes);
  }
  return part;
}

HostTensor joined(std::span<const HostTensor> parts, int dim) {
  Shape shape = parts[0].shape();
  std::int64_t& size = shape[static_cast<std::size_t>(dim)];
  size = 0;
  for (const HostTensor& part : parts) size += part.shape()[static_cast<std::size_t>(dim)];
  HostTensor whole(parts[0].dtype(), shape);
  const Blocks all(whole, dim);
  std::size_t start = 0;
  for (const HostTensor& part : parts) {
    const Blocks own(part, dim);
    const std::size_t bytes = own.size * own.inner;
    for (std::size_t i = 0; i < own.outer && bytes > 0; ++i) {
      std::memcpy(whole.bytes().data() + (i * all.size + start) * all.inner, part.bytes().data() + i * bytes, bytes);
    }
    start += own.size;
  }
  return whole;
}

HostTensor summed(std::span<const HostTensor> tensors) {
  HostTensor total(tensors[0].dtype(), tensors[0].shape());
  for (std::int64_t i = 0; i < total.size(); ++i) {
    double sum = 0;
    for (const HostTensor& tensor : tensors) sum += tensor.at(i);
    total.set(i, sum);
  }
  return total;
}

}  // namespace systole
