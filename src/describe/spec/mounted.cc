#include "describe/spec/mounted.h"

namespace systole {

bool is_in(std::string_view path, std::string_view mount) {
  if (mount.ends_with('/')) mount.remove_suffix(1);
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

const MountedVolume* volume_of(const std::map<std::string, VolumeSpec>& volumes, std::string_view path) {
  const MountedVolume* innermost = nullptr;
  for (const MountedVolume& volume : volumes) {
    if (is_in(path, volume.first) && (innermost == nullptr || volume.first.size() > innermost->first.size()))
      innermost = &volume;
  }
  return innermost;
}

}  // namespace systole
