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

}  // namespace

HostTensor initial_value(const Parameter& parameter, std::uint64_t seed) {
  HostTensor tensor(parameter.type.dtype, parameter.type.shape);
  const Init& init = parameter.init;
  if (init.kind == Init::Kind::zeros) return tensor;
  const std::uint64_t key = hash64(std::string_view(parameter.name), seed);
  for (std::int64_t block = 0; block * 4 < tensor.size(); ++block) {
    std::array<double, 4> numbers{1, 1, 1, 1};
    if (init.kind != Init::Kind::ones) numbers = standard_numbers(init.kind, key, static_cast<std::uint64_t>(block));
    const double scale = init.kind == Init::Kind::ones ? 1 : init.scale;
    for (std::int64_t i = block * 4; i < std::min(tensor.size(), block * 4 + 4); ++i) {
      tensor.set(i, scale * numbers[static_cast<std::size_t>(i - block * 4)]);
    }
  }
  return tensor;
}

Status initialize(Executor& executor, std::uint64_t seed) {
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    if (value.residence == Residence::parameter) {
      TRY(executor.write(v, 0, initial_value(*value.parameter, seed).bytes()));
    } else if (value.residence == Residence::state) {
      TRY(executor.write(v, 0, HostTensor(value.type.dtype, value.type.shape).bytes()));
    }
  }
  return {};
}

}  // namespace systole
