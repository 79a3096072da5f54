#include "describe/spec/mounted.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Mounted, a_path_is_in_the_innermost_volume) {
  const std::map<std::string, VolumeSpec> volumes = {
      {"/data", {.of = "outer"}}, {"/data/in", {.of = "inner"}}, {"/data/in-other", {.of = "other"}}};
  const auto name = [&](std::string_view path) {
    const MountedVolume* found = volume_of(volumes, path);
    return found == nullptr ? "" : found->second.of;
  };
  EXPECT_EQ(name("/data"), "outer");
  EXPECT_EQ(name("/data/x/y"), "outer");
  EXPECT_EQ(name("/data/in/y"), "inner");
  EXPECT_EQ(name("/data/in-other"), "other");
  EXPECT_EQ(name("/data/input"), "outer");
  EXPECT_EQ(name("/database"), "");
  EXPECT_EQ(name("/"), "");
}

TEST(Mounted, the_root_holds_all) {
  EXPECT_TRUE(is_in("/a", "/"));
  EXPECT_TRUE(is_in("/a/b", "/a/"));
  EXPECT_FALSE(is_in("/ab", "/a/"));
}

TEST(Volume, is_made_with_the_run_or_there_already) {
  using Kind = VolumeSpec::Kind;
  for (const Kind kind : {Kind::filestore, Kind::hyperdisk, Kind::local_ssd, Kind::cheapest})
    EXPECT_TRUE((VolumeSpec{.kind = kind}.made())) << name_of(kind);
  for (const Kind kind : {Kind::claim, Kind::nfs, Kind::bucket, Kind::image, Kind::lustre, Kind::parallelstore})
    EXPECT_FALSE((VolumeSpec{.kind = kind}.made())) << name_of(kind);
  EXPECT_TRUE((VolumeSpec{.kind = Kind::parallelstore, .of = "new"}.made()));
  EXPECT_TRUE((VolumeSpec{.kind = Kind::claim, .of = "data", .size = 10 * kGiB}.made()));
}

}  // namespace
}  // namespace systole
