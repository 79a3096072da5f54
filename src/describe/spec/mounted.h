#pragma once
// Which volume a path of a node's container is in.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "describe/spec/volume.h"

namespace systole {

// Whether the path is `mount` or below it.
bool is_in(std::string_view path, std::string_view mount);
// The innermost volume that the path is in, with where it is mounted; null: none.
using MountedVolume = std::pair<const std::string, VolumeSpec>;
const MountedVolume* volume_of(const std::map<std::string, VolumeSpec>& volumes, std::string_view path);

}  // namespace systole
