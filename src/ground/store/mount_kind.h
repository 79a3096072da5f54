#pragma once
// Which file system a folder is on, where it is not that of a disk: a network file system or a mounted bucket. Their
// rename, fsync and locks may not be those of a disk, and small reads cost a round trip.
//
// Source of the numbers: statfs(2), and linux/magic.h (2026-11).

#include <cstdint>
#include <string>

namespace systole {

enum class MountKind { disk, memory, nfs, smb, fuse, lustre, ceph, gpfs, nine_p };
const char* name_of(MountKind kind);  // "NFS"

MountKind mount_kind_of(std::int64_t magic);
// Of the folder, or of the nearest one above it that exists. One that cannot be looked at counts as a disk.
MountKind mount_kind_at(const std::string& path);

}  // namespace systole
