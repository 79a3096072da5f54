#include "ground/store/mount_kind.h"

#include <sys/vfs.h>

#include <filesystem>

namespace systole {

const char* name_of(MountKind kind) {
  switch (kind) {
    case MountKind::disk: return "a disk";
    case MountKind::memory: return "memory";
    case MountKind::nfs: return "NFS";
    case MountKind::smb: return "SMB";
    case MountKind::fuse: return "FUSE";
    case MountKind::lustre: return "Lustre";
    case MountKind::ceph: return "CephFS";
    case MountKind::gpfs: return "GPFS";
    case MountKind::nine_p: return "9P";
  }
  return "?";
}

MountKind mount_kind_of(std::int64_t magic) {
  switch (static_cast<std::uint32_t>(magic)) {
    case 0x6969: return MountKind::nfs;
    case 0x517b:
    case 0xff534d42:
    case 0xfe534d42: return MountKind::smb;
    case 0x65735546: return MountKind::fuse;
    case 0x0bd00bd0: return MountKind::lustre;
    case 0x00c36400: return MountKind::ceph;
    case 0x47504653: return MountKind::gpfs;
    case 0x01021997: return MountKind::nine_p;
    case 0x01021994:
    case 0x858458f6: return MountKind::memory;
    default: return MountKind::disk;
  }
}

MountKind mount_kind_at(const std::string& path) {
  std::error_code failed;
  std::filesystem::path at = std::filesystem::absolute(path, failed);
  if (failed) return MountKind::disk;
  while (!std::filesystem::exists(at, failed) && at.has_relative_path()) at = at.parent_path();
  struct statfs info;
  if (::statfs(at.c_str(), &info) != 0) return MountKind::disk;
  return mount_kind_of(static_cast<std::int64_t>(info.f_type));
}

}  // namespace systole
