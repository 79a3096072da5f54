#pragma once
// For tests: the tiny state (tiny_state.h) sharded over the ranks of a mesh, in one of a few ways. Every rank's buffer
// has padding where the shards do not divide, filled with 0xEE, so that padding in a checkpoint would be detected.

#include <string>
#include <vector>

#include "execute/checkpoint/ownership.h"
#include "execute/checkpoint/testing/tiny_state.h"

namespace systole::checkpoint {

inline Mesh tiny_mesh(int ranks) {
  const char* text = ranks == 1   ? ""
                     : ranks == 2 ? "x=2"
                     : ranks == 3 ? "x=3"
                     : ranks == 4 ? "x=2 y=2"
                     : ranks == 6 ? "x=2 y=3"
                                  : "x=4 y=2";
  return Mesh::parse(text).value();
}

enum class TinyCut { first_dim, each_axis_a_dim, last_dim_reversed, replicated };
inline constexpr int kTinyCuts = 4;

inline Sharding tiny_sharding(std::size_t ndim, const Mesh& mesh, TinyCut cut) {
  Sharding sharding = Sharding::replicated(ndim);
  if (ndim == 0 || cut == TinyCut::replicated) return sharding;
  const auto& axes = mesh.axes();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (cut == TinyCut::first_dim) sharding.dims[0].push_back(axes[a].name);
    if (cut == TinyCut::each_axis_a_dim) sharding.dims[a % ndim].push_back(axes[a].name);
    if (cut == TinyCut::last_dim_reversed) sharding.dims[ndim - 1].push_back(axes[axes.size() - 1 - a].name);
  }
  return sharding;
}

class TinyRanks {
 public:
  TinyRanks(std::int64_t step, int ranks, TinyCut cut) : step_(step), mesh_(tiny_mesh(ranks)) {
    for (const TinyTensor& tensor : tiny_state(step)) {
      const Shape& shape = tensor.value.shape();
      tensors_.push_back({tensor.name, tensor.role, tensor.value.dtype(), shape,
                          tiny_sharding(shape.size(), mesh_, cut), tensor.group});
    }
    owned_ = assign_owners(tensors_, mesh_).value();
    for (int rank = 0; rank < ranks; ++rank) buffers_.push_back(make_buffers(rank));
  }

  int ranks() const { return static_cast<int>(mesh_.num_devices()); }
  const std::vector<LaidTensor>& tensors() const { return tensors_; }
  const Mesh& mesh() const { return mesh_; }

  // Borrows the buffers.
  SaveRequest request(int rank, std::int64_t number = 1) const {
    const auto state = tiny_state(step_);
    SaveRequest request = tiny_request(step_, state);
    request.number = number;
    const auto r = static_cast<std::size_t>(rank);
    request.tensors = parts_to_save(tensors_, mesh_, rank, owned_[r]);
    for (TensorPart& part : request.tensors) {
      if (part.box.empty()) continue;
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        if (tensors_[t].name == part.name) part.bytes = buffers_[r][t];
      }
    }
    return request;
  }

  Box held(int rank, std::size_t tensor) const {
    return padded_box_on(tensors_[tensor].shape, tensors_[tensor].sharding, mesh_, rank).value();
  }
  Box box(int rank, std::size_t tensor) const {
    return box_on(tensors_[tensor].shape, tensors_[tensor].sharding, mesh_, rank).value();
  }
  const std::vector<std::vector<std::byte>>& buffers(int rank) const {
    return buffers_[static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::vector<std::byte>> make_buffers(int rank) const {
    std::vector<std::vector<std::byte>> buffers;
    const auto state = tiny_state(step_);
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const std::int64_t element = size_of(tensors_[t].dtype);
      const Box around = held(rank, t);
      buffers.emplace_back(static_cast<std::size_t>(around.num_elements() * element), std::byte{0xee});
      copy_part(box(rank, t), element, Box::whole(tensors_[t].shape), state[t].value.bytes(), around, buffers.back());
    }
    return buffers;
  }

  std::int64_t step_;
  Mesh mesh_;
  std::vector<LaidTensor> tensors_;
  std::vector<std::vector<OwnedBox>> owned_;
  std::vector<std::vector<std::vector<std::byte>>> buffers_;  // rank, tensor
};

// "" if every rank of that mesh and cut restores exactly its shards, and its padding is unchanged.
inline std::string verify_on_ranks(const Checkpoint& checkpoint, int ranks, TinyCut cut) {
  const TinyRanks expected(checkpoint.manifest().step, ranks, cut);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t t = 0; t < expected.tensors().size(); ++t) {
      const LaidTensor& tensor = expected.tensors()[t];
      std::vector<std::byte> buffer(expected.buffers(rank)[t].size(), std::byte{0xee});
      auto read = checkpoint.read_into(tensor.name, tensor.dtype, tensor.shape, expected.box(rank, t),
                                       expected.held(rank, t), buffer);
      if (!read) return to_string(read.error());
      if (buffer != expected.buffers(rank)[t])
        return fmt::format("rank {} of {}: {} is not what was saved", rank, ranks, tensor.name);
    }
  }
  return "";
}

}  // namespace systole::checkpoint
