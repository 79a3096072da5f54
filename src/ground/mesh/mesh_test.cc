#include "ground/mesh/mesh.h"

#include <gtest/gtest.h>

#include <set>

namespace systole {
namespace {

TEST(Mesh, text_both_ways) {
  const Mesh mesh = Mesh::parse(" data=2\ttensor=4 ").value();
  EXPECT_EQ(to_string(mesh), "data=2 tensor=4");
  EXPECT_EQ(Mesh::parse(to_string(mesh)).value(), mesh);
  EXPECT_EQ(mesh.num_devices(), 8);
}

TEST(Mesh, without_axes_is_one_device) {
  EXPECT_EQ(Mesh::parse("").value(), Mesh());
  EXPECT_TRUE(Mesh().trivial());
  EXPECT_EQ(Mesh().device_at({}), 0);
  EXPECT_TRUE(Mesh::parse("data=1").value().trivial());
}

TEST(Mesh, of_names_and_sizes) {
  const std::pair<std::string, std::int64_t> sizes[] = {{"data", 2}, {"model", 3}};
  const Mesh mesh = Mesh::of(sizes).value();
  EXPECT_EQ(mesh, Mesh::parse("data=2 model=3").value());
  EXPECT_EQ(mesh.size_along("model"), 3);
  EXPECT_EQ(mesh.size_along("pipe"), 1);
}

TEST(Mesh, coordinates_and_devices_are_inverse_last_axis_fastest) {
  const Mesh mesh = Mesh::parse("a=2 b=3 c=4").value();
  EXPECT_EQ(mesh.coordinates(5), (Coordinates{0, 1, 1}));
  for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
    EXPECT_EQ(mesh.device_at(mesh.coordinates(device)), device);
  }
}

TEST(Mesh, refuses_what_is_none) {
  for (const char* text : {"data", "data=", "data=x", "data=2x", "=2", "2a=2", "data=0", "data=-1", "data=2 data=2",
                           "a=65536 b=65536", "data=99999999999999999999"}) {
    const auto mesh = Mesh::parse(text);
    ASSERT_FALSE(mesh.ok()) << text;
    EXPECT_EQ(mesh.error().kind, ErrorKind::invalid) << text;
  }
}

TEST(Mesh, groups_differ_only_along_their_axes) {
  const Mesh mesh = Mesh::parse("a=2 b=3 c=2").value();
  const std::vector<std::string> b{"b"}, ca{"c", "a"}, none, all{"a", "b", "c"}, twice{"a", "a"}, absent{"x"};
  EXPECT_EQ(mesh.groups(b).value(),
            (std::vector<std::vector<std::int64_t>>{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}));
  EXPECT_EQ(mesh.groups(ca).value(),
            (std::vector<std::vector<std::int64_t>>{{0, 6, 1, 7}, {2, 8, 3, 9}, {4, 10, 5, 11}}));
  EXPECT_EQ(mesh.groups(none).value().size(), 12U);
  EXPECT_EQ(mesh.groups(all).value().size(), 1U);
  EXPECT_EQ(mesh.groups(twice).error().kind, ErrorKind::invalid);
  EXPECT_EQ(mesh.groups(absent).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
