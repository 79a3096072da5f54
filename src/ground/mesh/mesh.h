#pragma once
// A device mesh: devices laid out along ordered, named axes. Device numbers are row-major, the last axis fastest, so
// "data=2 tensor=4" puts devices 0..3 into data=0. Without axes it is the trivial mesh, one device. Immutable.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct Axis {
  std::string name;  // a letter, then letters, digits, '_' or '-'
  std::int64_t size = 1;
  bool operator==(const Axis&) const = default;
};

using Coordinates = std::vector<std::int64_t>;  // one for each axis

class Mesh {
 public:
  Mesh() = default;  // one device
  // Errors: invalid when a name is not a name or comes twice, a size is below 1, or there are more than 2^31 devices.
  static Result<Mesh> make(std::vector<Axis> axes);
  // "data=2 tensor=4", the inverse of to_string; "" is the trivial mesh. Errors: as make, and text that is no list.
  static Result<Mesh> parse(std::string_view text);

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t num_devices() const { return num_devices_; }
  bool trivial() const { return num_devices_ == 1; }

  // Position of the axis among axes(). Errors: not_found, with the nearest names.
  Result<std::size_t> find(std::string_view axis) const;

  // REQUIRES: 0 <= device < num_devices().
  Coordinates coordinates(std::int64_t device) const;
  // REQUIRES: one coordinate for each axis, each within it.
  std::int64_t device_at(std::span<const std::int64_t> coordinates) const;

  // Devices that differ only along the named axes, one list for each place on the other axes, in order of device
  // numbers; within a list the first named axis is outermost. With no names, each device is alone.
  // Errors: not_found; invalid when an axis is named twice.
  Result<std::vector<std::vector<std::int64_t>>> groups(std::span<const std::string> axes) const;

  bool operator==(const Mesh&) const = default;

 private:
  std::vector<Axis> axes_;
  std::int64_t num_devices_ = 1;
};

std::string to_string(const Mesh& mesh);

}  // namespace systole
