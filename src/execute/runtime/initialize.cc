#include "execute/runtime/initialize.h"

#include <cstring>

#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Four numbers at once: the bits of elements 4 block … 4 block + 3.
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

// Of all elements, into zeroed bytes.
void fill(const Parameter& parameter, std::uint64_t seed, std::byte* into) {
  const Init& init = parameter.init;
  if (init.kind == Init::Kind::zeros) return;
  const std::int64_t size = num_elements(parameter.type.shape);
  const std::uint64_t key = hash64(std::string_view(parameter.name), seed);
  for (std::int64_t block = 0; block * 4 < size; ++block) {
    std::array<double, 4> numbers{1, 1, 1, 1};
    if (init.kind != Init::Kind::ones) numbers = standard_numbers(init.kind, key, static_cast<std::uint64_t>(block));
    const double scale = init.kind == Init::Kind::ones ? 1 : init.scale;
    for (std::int64_t i = block * 4; i < std::min(size, block * 4 + 4); ++i) {
      store(parameter.type.dtype, into, i, scale * numbers[static_cast<std::size_t>(i - block * 4)]);
    }
  }
}

}  // namespace

HostTensor initial_value(const Parameter& parameter, std::uint64_t seed) {
  HostTensor tensor(parameter.type.dtype, parameter.type.shape);
  fill(parameter, seed, tensor.bytes().data());
  return tensor;
}

Status initialize(Executor& executor, std::uint64_t seed) {
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    const bool is_parameter = value.residence == Residence::parameter;
    if (!is_parameter && value.residence != Residence::state) continue;
    // In its place where the host sees it: a large tensor beside the arena would be more than was planned.
    if (const std::span<std::byte> view = executor.view(v, 0); !view.empty()) {
      std::memset(view.data(), 0, view.size());
      if (is_parameter) fill(*value.parameter, seed, view.data());
      continue;
    }
    const HostTensor tensor =
        is_parameter ? initial_value(*value.parameter, seed) : HostTensor(value.type.dtype, value.type.shape);
    TRY(executor.write(v, 0, tensor.bytes()));
  }
  return {};
}

}  // namespace systole
