#include "ground/mesh/sharding.h"

#include <set>

namespace systole {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',')
      words.emplace_back();
    else if (c != ' ')
      words.back() += c;
  }
  return words;
}

// The number of shards of a dim over the named axes. REQUIRES: check_sharding succeeds.
std::int64_t parts_of(const std::vector<std::string>& axes, const Mesh& mesh) {
  std::int64_t parts = 1;
  for (const std::string& axis : axes) parts *= mesh.axes()[mesh.find(axis).value()].size;
  return parts;
}

}  // namespace

Result<Sharding> Sharding::parse(std::string_view text) {
  const auto bad = [&] {
    return error(ErrorKind::invalid, "'{}' is no sharding", text)
        .hinted("write one pair of braces for each dim, such as {data}{}{tensor}");
  };
  Sharding result;
  while (!text.empty()) {
    const std::size_t close = text.find('}');
    if (text[0] != '{' || close == text.npos) return bad();
    const std::string_view inside = text.substr(1, close - 1);
    if (inside.find('{') != inside.npos) return bad();
    result.dims.push_back(inside.empty() ? std::vector<std::string>{} : split(inside));
    for (const std::string& axis : result.dims.back()) {
      if (axis.empty()) return bad();
    }
    text.remove_prefix(close + 1);
  }
  return result;
}

const char* name_of(ZeroStage stage) {
  switch (stage) {
    case ZeroStage::nothing: return "nothing";
    case ZeroStage::state: return "state";
    case ZeroStage::gradients: return "gradients";
    case ZeroStage::parameters: break;
  }
  return "parameters";
}

std::string to_string(const Sharding& sharding) {
  std::string text;
  for (const auto& axes : sharding.dims) text += fmt::format("{{{}}}", fmt::join(axes, ","));
  return text;
}

Status check_sharding(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  if (sharding.dims.size() != shape.size()) {
    return error(ErrorKind::invalid, "sharding {} is of {} dims, the tensor {} has {}", to_string(sharding),
                 sharding.dims.size(), to_string(shape), shape.size());
  }
  std::set<std::string> used;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (const std::string& axis : sharding.dims[d]) {
      TRY(mesh.find(axis));
      if (!used.insert(axis).second) {
        return error(ErrorKind::invalid, "sharding {} uses axis '{}' twice", to_string(sharding), axis);
      }
    }
    const std::int64_t parts = parts_of(sharding.dims[d], mesh);
    if (shape[d] % parts != 0) {
      return error(ErrorKind::invalid, "dim {} of {} has size {}, which {} = {} parts do not divide", d,
                   to_string(shape), shape[d], fmt::join(sharding.dims[d], "×"), parts);
    }
  }
  return Done{};
}

Result<Shape> local_shape(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  TRY(check_sharding(shape, sharding, mesh));
  Shape local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) local[d] /= parts_of(sharding.dims[d], mesh);
  return local;
}

Result<Shard> shard_of(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device) {
  Shard shard{Shape(shape.size(), 0), TRY(local_shape(shape, sharding, mesh))};
  const Coordinates at = mesh.coordinates(device);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t part = 0;
    for (const std::string& name : sharding.dims[d]) {
      const std::size_t axis = mesh.find(name).value();
      part = part * mesh.axes()[axis].size + at[axis];
    }
    shard.offset[d] = part * shard.size[d];
  }
  return shard;
}

}  // namespace systole
