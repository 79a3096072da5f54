#pragma once
// A device mesh: an array of devices with ordered, named axes. Device numbers are row-major, the last axis fastest: in
// "data=2 tensor=4" devices 0..3 have data=0. Without axes it is the trivial mesh, one device. Immutable.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct Axis {
  std::string name;  // a letter, then letters, digits, '_' or '-'
  std::int64_t size = 1;
  bool operator==(const Axis&) const = default;
};

using Coordinates = std::vector<std::int64_t>;  // one per axis

class Mesh {
 public:
  Mesh() = default;  // one device
  // Errors: invalid if a name is malformed or duplicate, a size is below 1, or there are more than 2^31 devices.
  static Result<Mesh> make(std::vector<Axis> axes);
  // The same from names and sizes.
  static Result<Mesh> of(std::span<const std::pair<std::string, std::int64_t>> sizes);
  // "data=2 tensor=4", the inverse of to_string; "" is the trivial mesh. Errors: as make; invalid for malformed text.
  static Result<Mesh> parse(std::string_view text);

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t num_devices() const { return num_devices_; }
  bool trivial() const { return num_devices_ == 1; }

  // The index of the axis in axes(). Errors: not_found, with the nearest names.
  Result<std::size_t> find(std::string_view axis) const;
  std::int64_t size_along(std::string_view axis) const;  // 1 if there is no such axis

  // REQUIRES: 0 <= device < num_devices().
  Coordinates coordinates(std::int64_t device) const;
  // REQUIRES: one coordinate per axis, each within the axis.
  std::int64_t device_at(std::span<const std::int64_t> coordinates) const;

  // The groups of devices that differ only along the named axes, in order of device numbers. Within a group the first
  // named axis is outermost. Without names, each device is its own group.
  // Errors: not_found; invalid if an axis is named twice.
  Result<std::vector<std::vector<std::int64_t>>> groups(std::span<const std::string> axes) const;

  bool operator==(const Mesh&) const = default;

 private:
  std::vector<Axis> axes_;
  std::int64_t num_devices_ = 1;
};

std::string to_string(const Mesh& mesh);

}  // namespace systole
