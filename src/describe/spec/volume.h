#pragma once
// A volume that is mounted into each node's container at a path.

#include <optional>
#include <string>

#include "ground/base/units.h"

namespace systole {

struct VolumeSpec {
  // An existing claim, or a new one if a size is given; a folder of an NFS server; a bucket; a container image; a new Filestore file
  // system; an existing Lustre or Parallelstore file system; a new disk; the machine's local disks.
  enum class Kind {
    claim,
    nfs,
    bucket,
    image,
    filestore,
    lustre,
    parallelstore,
    hyperdisk,
    local_ssd
  } kind = Kind::claim;
  std::string of;        // NAME, SERVER:/PATH, BUCKET, IMAGE, tier, PROJECT/ZONE/INSTANCE, type; empty for local_ssd
  std::string address;   // lustre: IP/FILESYSTEM; parallelstore: IP,IP,IP
  std::string network;   // for parallelstore; empty: default
  std::string of_class;  // StorageClass of a new claim; empty: the cluster's default
  std::optional<Bytes> size;
  bool read_only = false;
  bool operator==(const VolumeSpec&) const = default;
};

const char* name_of(VolumeSpec::Kind kind);

}  // namespace systole
