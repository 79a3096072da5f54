#pragma once
// What is mounted into each node's container at a path.

#include <optional>
#include <string>

#include "ground/base/units.h"

namespace systole {

struct VolumeSpec {
  // A claim that is there, or is made when a size is said; an NFS server's folder; a bucket; a new file system of
  // Filestore; one of Lustre or Parallelstore that is there; a new disk; the disks in the machine.
  enum class Kind { claim, nfs, bucket, filestore, lustre, parallelstore, hyperdisk, local_ssd } kind = Kind::claim;
  std::string of;        // NAME, SERVER:/PATH, BUCKET, tier, PROJECT/ZONE/INSTANCE, type; of local_ssd nothing
  std::string address;   // of lustre, IP/FILESYSTEM; of parallelstore, IP,IP,IP
  std::string network;   // of parallelstore; empty: default
  std::string of_class;  // StorageClass of a claim that is made; empty: the cluster's default
  std::optional<Bytes> size;
  bool read_only = false;
  bool operator==(const VolumeSpec&) const = default;

  // Whether all nodes can write it at the same time, as files with locks that stay when a pod ends.
  bool is_shared_folder() const {
    return kind == Kind::claim || kind == Kind::nfs || kind == Kind::filestore || kind == Kind::lustre ||
           kind == Kind::parallelstore;
  }
};

const char* name_of(VolumeSpec::Kind kind);

}  // namespace systole
