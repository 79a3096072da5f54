#include "ground/store/mount_kind.h"

#include <gtest/gtest.h>
#include <linux/magic.h>

#include <filesystem>

namespace systole {
namespace {

TEST(MountKind, KnowsTheMagicOfTheKernel) {
  EXPECT_EQ(mount_kind_of(NFS_SUPER_MAGIC), MountKind::nfs);
  EXPECT_EQ(mount_kind_of(FUSE_SUPER_MAGIC), MountKind::fuse);
  EXPECT_EQ(mount_kind_of(CEPH_SUPER_MAGIC), MountKind::ceph);
  EXPECT_EQ(mount_kind_of(V9FS_MAGIC), MountKind::nine_p);
  EXPECT_EQ(mount_kind_of(TMPFS_MAGIC), MountKind::memory);
  EXPECT_EQ(mount_kind_of(SMB2_SUPER_MAGIC), MountKind::smb);
  EXPECT_EQ(mount_kind_of(static_cast<std::int32_t>(0xfe534d42)), MountKind::smb) << "a negative number, on 32 bits";
  EXPECT_EQ(mount_kind_of(EXT4_SUPER_MAGIC), MountKind::disk);
  EXPECT_EQ(mount_kind_of(OVERLAYFS_SUPER_MAGIC), MountKind::disk);
}

TEST(MountKind, LooksAtTheNearestFolderThatExists) {
  if (!std::filesystem::exists("/dev/shm")) return;
  EXPECT_EQ(mount_kind_at("/dev/shm/not/there/yet"), mount_kind_at("/dev/shm"));
  EXPECT_EQ(mount_kind_at("/dev/shm"), MountKind::memory);
}

}  // namespace
}  // namespace systole
