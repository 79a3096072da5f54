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

}  // namespace
}  // namespace systole
