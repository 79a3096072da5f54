#include "execute/runtime/initialize.h"

#include <cstring>

#include "describe/ir/layer_names.h"
#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Four numbers at once: elements 4 * block … 4 * block + 3.
std::array<double, 4> standard_numbers(Init::Kind kind, std::uint64_t key, std::uint64_t block) {
  const PhiloxBlock bits = philox(key, philox_counter(block));
  if (kind == Init::Kind::normal) {
    const auto [a, b] = normal_pair(bits[0], bits[1]);
    const auto [c, d] = normal_pair(bits[2], bits[3]);
    return {a, b, c, d};
  }
  std::array<double, 4> uniform{};
  for (std::size_t i = 0; i < 4; ++i) uniform[i] = 2.0 * static_cast<double>(uniform_f32(bits[i])) - 1.0;
  return uniform;
}

// Writes elements [first, first + count) of the parameter to zeroed bytes, from element `at` on. A pipeline chunk gets
// the same values as in the whole model.
void fill(const Parameter& parameter, std::uint64_t seed, std::int64_t first, std::int64_t count, std::byte* into,
          std::int64_t at) {
  const Init& init = parameter.init;
  if (init.kind == Init::Kind::zeros) return;
  const std::optional<LayerName> layers = layer_name(parameter.name);
  if (layers) {
    const std::int64_t before = layers->before() * (parameter.type.num_elements() / parameter.type.size(0));
    first += before;
  }
  const std::int64_t end = first + count;
  const std::uint64_t key = hash64(layers ? layers->whole() : parameter.name, seed);
  for (std::int64_t block = first / 4; block * 4 < end; ++block) {
    std::array<double, 4> numbers{1, 1, 1, 1};
    if (init.kind != Init::Kind::ones) numbers = standard_numbers(init.kind, key, static_cast<std::uint64_t>(block));
    const double scale = init.kind == Init::Kind::ones ? 1 : init.scale;
    for (std::int64_t i = std::max(first, block * 4); i < std::min(end, block * 4 + 4); ++i) {
      store(parameter.type.dtype, into, at + i - first, scale * numbers[static_cast<std::size_t>(i - block * 4)]);
    }
  }
}

// Writes this device's part of a parameter to zeroed bytes.
void fill(const ProgramValue& value, const Mesh& mesh, const Coordinates& place, std::uint64_t seed, std::byte* into) {
  const Parameter& parameter = *value.parameter;
  const Shape& whole = parameter.type.shape;
  const Shard box = value.cut ? box_of(whole, value.cut->layout, mesh, place) : Shard{Shape(whole.size(), 0), whole};
  for_each_run(whole, box, value.type.shape, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    fill(parameter, seed, from, count, into, to);
  });
}

}  // namespace

HostTensor initial_value(const Parameter& parameter, std::uint64_t seed) {
  HostTensor tensor(parameter.type.dtype, parameter.type.shape);
  fill(parameter, seed, 0, tensor.size(), tensor.bytes().data(), 0);
  return tensor;
}

Status initialize(Executor& executor, std::uint64_t seed, std::int64_t device) {
  const Mesh& mesh = executor.program().mesh;
  const Coordinates place = mesh.coordinates(device);
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    const bool is_parameter = value.residence == Residence::parameter;
    if (!is_parameter && value.residence != Residence::state) continue;
    // In place if the host sees it: a large tensor beside the arena would exceed the planned memory.
    if (const std::span<std::byte> view = executor.view(v, 0); !view.empty()) {
      std::memset(view.data(), 0, view.size());
      if (is_parameter) fill(value, mesh, place, seed, view.data());
      continue;
    }
    HostTensor tensor(value.type.dtype, value.type.shape);
    if (is_parameter) fill(value, mesh, place, seed, tensor.bytes().data());
    TRY(executor.write(v, 0, tensor.bytes()));
  }
  return {};
}

}  // namespace systole
