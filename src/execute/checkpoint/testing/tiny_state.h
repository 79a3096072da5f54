#pragma once
// For tests: a state of a few small tensors whose values are functions of the step, so that a restored checkpoint can
// be verified element by element. One tensor never changes (its chunk is shared by all checkpoints), one is empty, one
// is a scalar, and one is larger than a chunk.

#include <memory>
#include <string>
#include <vector>

#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "ground/store/store.h"
#include "ground/tensor/buffer.h"

namespace systole::checkpoint {

inline constexpr Bytes kTinyChunk{160};

struct TinyTensor {
  std::string name;
  Role role;
  HostTensor value;
  int group;
};

// The files in a folder, hidden or not; empty if the folder does not exist.
inline Result<std::vector<std::string>> list_or_empty(Store& store, std::string_view dir) {
  auto names = store.list(dir);
  if (!names && names.error().kind == ErrorKind::not_found) return std::vector<std::string>();
  return names;
}

inline HostTensor tiny_value(std::int64_t step, int seed, DType dtype, const Shape& shape) {
  HostTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    tensor.set(i, static_cast<double>((step * 31 + seed * 17 + i * 7) % 251));
  }
  return tensor;
}

inline std::vector<TinyTensor> tiny_state(std::int64_t step) {
  return {{"embed.weight", Role::parameter, tiny_value(step, 1, DType::f32, {5, 4, 3}), 0},
          {"blocks.0.attn.q", Role::parameter, tiny_value(step, 2, DType::f32, {3, 4}), 0},
          {"blocks.1.attn.q", Role::parameter, tiny_value(step, 3, DType::bf16, {3, 4}), 0},
          {"blocks.1.mlp.frozen", Role::parameter, tiny_value(0, 4, DType::f32, {4, 2}), 1},
          {"scale", Role::parameter, tiny_value(step, 5, DType::f64, {}), 0},
          {"nothing", Role::parameter, tiny_value(step, 6, DType::f32, {0, 3}), 0},
          {"adam.m.embed.weight", Role::state, tiny_value(step, 7, DType::f32, {5, 4, 3}), 0},
          {"adam.steps", Role::state, tiny_value(step, 8, DType::i64, {1}), 0}};
}

// A request that borrows the state's bytes.
inline SaveRequest tiny_request(std::int64_t step, const std::vector<TinyTensor>& state) {
  SaveRequest request;
  request.step = step;
  request.date = "2026-01-31T12:00:00Z";
  request.identity = {"tiny", "0123", "4567"};
  request.metric = 1.0 + static_cast<double>(step % 7);
  for (const TinyTensor& tensor : state) {
    request.tensors.push_back({tensor.name, tensor.role, tensor.value.dtype(), tensor.value.shape(),
                               Box::whole(tensor.value.shape()), tensor.value.bytes(), tensor.group});
  }
  return request;
}

inline Result<SaveReport> save_tiny(const Folder& folder, std::int64_t step, const SaveOptions& options) {
  const auto state = tiny_state(step);
  return save(folder, tiny_request(step, state), options);
}

inline SaveOptions tiny_options(int last = 2) {
  SaveOptions options;
  options.chunk_bytes = kTinyChunk;
  options.retention.last = last;
  return options;
}

// "" if every element of the checkpoint equals the state of its step; else what is wrong.
inline std::string verify_tiny(const Checkpoint& checkpoint) {
  const auto state = tiny_state(checkpoint.manifest().step);
  if (checkpoint.manifest().tensors.size() != state.size()) return "another number of tensors";
  for (const TinyTensor& tensor : state) {
    HostTensor read(tensor.value.dtype(), tensor.value.shape());
    auto status = checkpoint.read(tensor.name, read.dtype(), read.shape(), Box::whole(read.shape()), read.bytes());
    if (!status) return to_string(status.error());
    if (read != tensor.value)
      return fmt::format("{} of step {} has other values", tensor.name, checkpoint.manifest().step);
  }
  return "";
}

// "" if every checkpoint in the folder is whole, and the newest of step 30 or, if that was not said to be there, of 20;
// else what is wrong.
inline std::string verify_tiny_saves(const Folder& folder, bool said) {
  const auto steps = list_steps(folder);
  if (!steps) return to_string(steps.error());
  if (steps->empty() || (steps->back() != 30 && (said || steps->back() != 20))) return "another newest step";
  for (const std::int64_t step : *steps) {
    const auto opened = open_step(folder, step);
    if (!opened) return fmt::format("checkpoint {}: {}", step, to_string(opened.error()));
    if (std::string wrong = verify_tiny(*opened); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace systole::checkpoint
