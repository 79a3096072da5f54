#include "ground/mesh/mesh.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::int64_t kMaxDevices = std::int64_t{1} << 31;

bool is_name(std::string_view text) {
  const auto inner = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) && std::ranges::all_of(text, inner);
}

Result<Axis> parse_axis(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals != word.npos)
    if (const std::optional<std::int64_t> size = number_from(word.substr(equals + 1)))
      return Axis{std::string(word.substr(0, equals)), *size};
  return error(ErrorKind::invalid, "'{}' is no mesh axis", word).hinted("write name=size, such as data=2 tensor=4");
}

}  // namespace

Result<Mesh> Mesh::make(std::vector<Axis> axes) {
  Mesh mesh;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    if (!is_name(axis.name)) return error(ErrorKind::invalid, "'{}' is no name for a mesh axis", axis.name);
    for (std::size_t j = 0; j < i; ++j) {
      if (axes[j].name == axis.name) return error(ErrorKind::invalid, "mesh axis '{}' comes twice", axis.name);
    }
    if (axis.size < 1)
      return error(ErrorKind::invalid, "mesh axis {}={} has no device", axis.name, axis.size)
          .hinted(fmt::format("{}=1 or more", axis.name));
    if (axis.size > kMaxDevices / mesh.num_devices_) {
      return error(ErrorKind::invalid, "mesh has more than {} devices", kMaxDevices);
    }
    mesh.num_devices_ *= axis.size;
  }
  mesh.axes_ = std::move(axes);
  return mesh;
}

Result<Mesh> Mesh::parse(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  std::vector<Axis> axes;
  for (std::size_t at = text.find_first_not_of(kSpace); at != text.npos; at = text.find_first_not_of(kSpace, at)) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    axes.push_back(TRY(parse_axis(text.substr(at, end - at))));
    at = end;
  }
  return make(std::move(axes));
}

Result<Mesh> Mesh::of(std::span<const std::pair<std::string, std::int64_t>> sizes) {
  std::vector<Axis> axes;
  for (const auto& [name, size] : sizes) axes.push_back({name, size});
  return make(std::move(axes));
}

Result<std::size_t> Mesh::find(std::string_view axis) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return i;
    names.push_back(axes_[i].name);
  }
  return error(ErrorKind::not_found, "the mesh has no axis '{}'", axis).hinted(nearest_hint(axis, names));
}

std::int64_t Mesh::size_along(std::string_view axis) const {
  const auto at = std::ranges::find(axes_, axis, &Axis::name);
  return at == axes_.end() ? 1 : at->size;
}

Coordinates Mesh::coordinates(std::int64_t device) const {
  CHECK(device >= 0 && device < num_devices_, "device {} of {}", device, num_devices_);
  Coordinates result(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    result[i] = device % axes_[i].size;
    device /= axes_[i].size;
  }
  return result;
}

std::int64_t Mesh::device_at(std::span<const std::int64_t> coordinates) const {
  CHECK(coordinates.size() == axes_.size(), "{} coordinates for {} axes", coordinates.size(), axes_.size());
  std::int64_t device = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    CHECK(coordinates[i] >= 0 && coordinates[i] < axes_[i].size, "{}={} of {}", axes_[i].name, coordinates[i],
          axes_[i].size);
    device = device * axes_[i].size + coordinates[i];
  }
  return device;
}

Result<std::vector<std::vector<std::int64_t>>> Mesh::groups(std::span<const std::string> names) const {
  std::vector<std::size_t> along;
  for (const std::string& name : names) {
    const std::size_t axis = TRY(find(name));
    if (std::ranges::find(along, axis) != along.end()) {
      return error(ErrorKind::invalid, "mesh axis '{}' is named twice", name);
    }
    along.push_back(axis);
  }
  // A group's key is its first device, which has coordinate 0 on every named axis.
  std::vector<std::vector<std::int64_t>> result;
  for (std::int64_t device = 0; device < num_devices_; ++device) {
    Coordinates at = coordinates(device);
    if (std::ranges::any_of(along, [&](std::size_t axis) { return at[axis] != 0; })) continue;
    std::vector<std::int64_t> group;
    for (bool more = true; more;) {
      group.push_back(device_at(at));
      more = false;
      for (std::size_t i = along.size(); i-- > 0 && !more;) {  // the next index, last named axis fastest
        more = ++at[along[i]] < axes_[along[i]].size;
        if (!more) at[along[i]] = 0;
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const Axis& axis : mesh.axes()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, axis.size);
  return text;
}

}  // namespace systole
