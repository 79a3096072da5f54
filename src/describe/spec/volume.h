#pragma once
// A volume that is mounted into each node's container at a path.

#include <optional>
#include <string>

#include "ground/base/units.h"

namespace systole {

struct VolumeSpec {
  // An existing claim, or a new one if a size is given; a folder of an NFS server; a bucket; a container image; a new Filestore file
  // system; an existing Lustre file system; a Parallelstore file system, a new one where `of` is "new"; a new disk; the
  // machine's local disks; whichever of the new ones is cheapest for the feed of the run.
  enum class Kind {
    claim,
    nfs,
    bucket,
    image,
    filestore,
    lustre,
    parallelstore,
    hyperdisk,
    local_ssd,
    cheapest
  } kind = Kind::claim;
  std::string
      of;  // NAME, SERVER:/PATH, BUCKET, IMAGE, tier, PROJECT/ZONE/INSTANCE, type; empty for local_ssd, cheapest
  std::string address;   // lustre: IP/FILESYSTEM; parallelstore: IP,IP,IP
  std::string network;   // for parallelstore; empty: default
  std::string of_class;  // StorageClass of a new claim; empty: the cluster's default
  std::optional<Bytes> size;
  bool read_only = false;
  bool operator==(const VolumeSpec&) const = default;

  // Whether its kind, tier or size follows from the feed of the run; `size` is then what it has to hold.
  bool open() const {
    return kind == Kind::cheapest || (kind == Kind::filestore && (of == "auto" || !size)) ||
           (kind == Kind::parallelstore && of == "new" && !size);
  }
  // Whether it begins empty with the run, which pays for it.
  bool made() const {
    switch (kind) {
      case Kind::filestore:
      case Kind::hyperdisk:
      case Kind::local_ssd:
      case Kind::cheapest: return true;
      case Kind::parallelstore: return of == "new";
      case Kind::claim: return size.has_value();
      default: return false;
    }
  }
};

const char* name_of(VolumeSpec::Kind kind);

}  // namespace systole
