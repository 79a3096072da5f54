#include "describe/partition/exact_graphs.h"

#include <algorithm>
#include <array>

#include "describe/ops/ops.h"
#include "describe/partition/exact.h"

namespace systole {
namespace {

constexpr std::int64_t kNormBlock = 65'536;  // elements of a block of the norm

Value padded(Value x, int dim, std::int64_t size) {
  if (x.size(dim) == size) return x;
  Ints low(x.type().shape.size(), 0), high = low;
  high[static_cast<std::size_t>(dim)] = size - x.size(dim);
  return pad(x, low, high, 0);
}

Value trimmed(Value x, int dim, std::int64_t size) { return x.size(dim) == size ? x : slice_dim(x, dim, 0, size); }

Type flat(const Type& type) { return Type(type.dtype, {type.num_elements()}); }

// The blocks of a tensor along `dim`, all of one size. Each shard is padded with zeros, and so is the whole.
struct Blocks {
  Type shape;              // of the unsharded tensor
  int dim = 0;             // that is split
  std::int64_t parts = 1;  // number of shards along the store axis
  std::int64_t part = 0;   // size of such a shard along dim
  std::int64_t block = 0;  // size of a worker's block along dim
};

Blocks blocks_of(const Type& whole, int cut_dim, const ExactWorkers& workers) {
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  if (cut_dim < 0) {
    const std::int64_t n = whole.num_elements();
    return {flat(whole), 0, 1, n, up(n, workers.count)};
  }
  const std::int64_t part = up(whole.size(cut_dim), workers.parts);
  return {whole, cut_dim, workers.parts, part, up(part, workers.copies)};
}

// Padded with zeros to blocks of one size.
Value in_blocks(Value x, const Blocks& blocks, const ExactWorkers& workers) {
  if (blocks.parts == 1) return padded(reshape(x, blocks.shape), blocks.dim, blocks.block * workers.count);
  x = padded(x, blocks.dim, blocks.parts * blocks.part);
  const std::int64_t filled = blocks.block * workers.copies;
  if (filled == blocks.part) return x;
  Type apart(x.dtype(), {}), joined(x.dtype(), {});
  for (int d = 0; d < x.type().ndim(); ++d) {
    if (d == blocks.dim) apart.add_dim(blocks.parts, "");
    apart.add_dim(d == blocks.dim ? blocks.part : x.size(d), "");
    joined.add_dim(d == blocks.dim ? blocks.parts * filled : x.size(d), "");
  }
  return reshape(padded(reshape(x, apart), blocks.dim + 1, filled), joined);
}

Value as_scalar(Value x) { return reshape(x, Type(x.dtype(), {})); }

// Adds neighbours pairwise until one element is left. REQUIRES: a vector whose length is a power of two.
Value add_neighbours(Value x) {
  while (x.size(0) > 1) {
    const std::int64_t half = x.size(0) / 2;
    const Value pairs = reshape(x, Type(x.dtype(), {half, 2}));
    const Value left = slice_dim(pairs, 1, 0, 1), right = slice_dim(pairs, 1, 1, 2);
    x = reshape(add(left, right), Type(x.dtype(), {half}));
  }
  return as_scalar(x);
}

}  // namespace

ExactWorkers exact_workers(const TrainingLayouts& layouts, int shards, std::int64_t device) {
  const Mesh& mesh = layouts.mesh();
  ExactWorkers workers;
  std::vector<std::string> axes;
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
    const Axis& axis = mesh.axes()[a];
    if (!layouts.cuts_only_rows(a)) {
      fail(error(ErrorKind::unsupported, "exact training on a mesh with an axis '{}': its sums have other orders",
                 axis.name)
               .hinted(fmt::format("exact: false; or data and fsdp in place of {}. A checkpoint of an exact run "
                                   "restores the same bytes on any mesh, and goes on within the tolerance of rounding",
                                   axis.name)));
    }
    workers.count *= axis.size;
    if (layouts.stores(a)) {
      axes.insert(axes.begin(), axis.name);
      workers.parts = axis.size;
    } else {
      axes.push_back(axis.name);
      workers.copies_axes += (workers.copies_axes.empty() ? "" : ",") + axis.name;
      workers.copies *= axis.size;
    }
  }
  if (workers.count > shards) {
    fail(error(ErrorKind::invalid, "{} devices for {} logical shards: some would own none", workers.count, shards)
             .hinted(
                 fmt::format("train.logical_shards: a power of two of {} or more; or fewer devices", workers.count)));
  }
  if (workers.count == 1) return workers;
  workers.all = fmt::format("{}", fmt::join(axes, ","));
  const std::vector<std::int64_t> group = mesh.groups(axes).value().at(0);
  workers.me = std::find(group.begin(), group.end(), device) - group.begin();
  return workers;
}

Value summed_over_shards(Graph& graph, std::vector<Value> mine, const Type& whole, int cut_dim, int shards,
                         const ExactWorkers& workers) {
  const int count = static_cast<int>(workers.count);
  const Blocks blocks = blocks_of(whole, cut_dim, workers);
  Type sent = blocks.shape.with(mine.at(0).dtype());
  sent.shape[static_cast<std::size_t>(blocks.dim)] = blocks.block * workers.count;
  std::vector<Value> received;  // per slot: this worker's block from all workers, concatenated
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(most_subtrees(shards, count)); ++slot) {
    const Value x = slot < mine.size() ? in_blocks(mine[slot], blocks, workers) : constant(graph, sent, 0);
    received.push_back(all_to_all(x, workers.all, workers.count, blocks.dim, 0));
  }
  const std::int64_t rows = received[0].size(0) / workers.count;  // of one block
  Value sum = tree_sum<Value>(
      shards, count,
      [&](int worker, int i) {
        return slice_dim(received[static_cast<std::size_t>(i)], 0, worker * rows, (worker + 1) * rows);
      },
      [](Value left, Value right) { return add(left, right); });
  if (cut_dim < 0) {
    const Value all = trimmed(all_gather(sum, workers.all, workers.count, 0), 0, whole.num_elements());
    return reshape(all, whole.with(sum.dtype()));
  }
  if (workers.copies > 1)
    sum = trimmed(all_gather(sum, workers.copies_axes, workers.copies, cut_dim), cut_dim, blocks.part);
  return sum;
}

Value loss_over_shards(Graph& graph, std::vector<Value> mine, DType dtype, int shards, const ExactWorkers& workers) {
  const int count = static_cast<int>(workers.count);
  const int most = shards_of(shards, count, 0).count;
  for (Value& loss : mine) loss = reshape(loss, Type(dtype, {1}));
  while (static_cast<int>(mine.size()) < most) mine.push_back(constant(graph, Type(dtype, {1}), 0));
  Value all = mine.size() == 1 ? mine[0] : concatenate(mine, 0);
  if (count > 1) all = all_gather(all, workers.all, workers.count, 0);
  std::vector<Value> owned;
  for (int w = 0; w < count; ++w)
    owned.push_back(slice_dim(all, 0, w * most, w * most + shards_of(shards, count, w).count));
  return add_neighbours(owned.size() == 1 ? owned[0] : concatenate(owned, 0));
}

Value squares_by_blocks(const std::vector<Value>& gradients, const std::vector<std::int64_t>& layers) {
  std::vector<Value> sums;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Value x = gradients[i];
    const Attrs attrs{{"block", kNormBlock}, {"layers", layers[i]}};
    const Value blocks = x.graph->apply("sum_of_squares", std::array{x}, attrs)[0];
    sums.push_back(reshape(blocks, flat(blocks.type())));
    count += sums.back().size(0);
  }
  std::int64_t power = 1;
  while (power < count) power *= 2;
  return add_neighbours(padded(sums.size() == 1 ? sums[0] : concatenate(sums, 0), 0, power));
}

}  // namespace systole
