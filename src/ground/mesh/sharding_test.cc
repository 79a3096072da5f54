#include "ground/mesh/sharding.h"

#include <gtest/gtest.h>

#include <map>

namespace systole {
namespace {

Sharding sharding(const char* text) { return Sharding::parse(text).value(); }

TEST(Sharding, text_both_ways) {
  for (const char* text : {"", "{}", "{data}{}{tensor,seq}"}) EXPECT_EQ(to_string(sharding(text)), text);
  EXPECT_EQ(sharding("{data, tensor}").dims[0], (std::vector<std::string>{"data", "tensor"}));
  EXPECT_EQ(Sharding::replicated(2), sharding("{}{}"));
  for (const char* text : {"data", "{", "}", "{a}}", "{{a}", "{a,}", "{,}", "{a}x"}) {
    EXPECT_FALSE(Sharding::parse(text).ok()) << text;
  }
}

TEST(Sharding, shards_tile_the_tensor_once_for_each_replica) {
  const Mesh mesh = Mesh::parse("data=2 seq=3 tensor=2").value();
  const Shape shape{12, 5, 4};
  const Sharding cut = sharding("{seq,data}{}{}");
  EXPECT_EQ(local_shape(shape, cut, mesh).value(), (Shape{2, 5, 4}));
  std::map<std::int64_t, int> holders;  // first index of dim 0 → devices
  for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
    ++holders[shard_of(shape, cut, mesh, device).value().offset[0]];
  }
  EXPECT_EQ(holders, (std::map<std::int64_t, int>{{0, 2}, {2, 2}, {4, 2}, {6, 2}, {8, 2}, {10, 2}}));
}

TEST(Sharding, the_first_axis_of_a_dim_is_outermost) {
  const Mesh mesh = Mesh::parse("data=2 seq=3").value();
  const std::int64_t device = mesh.device_at(Coordinates{1, 2});
  EXPECT_EQ(shard_of({6}, sharding("{seq,data}"), mesh, device).value().offset, (Shape{5}));  // 2·2 + 1
  EXPECT_EQ(shard_of({6}, sharding("{data,seq}"), mesh, device).value().offset, (Shape{5}));  // 1·3 + 2
  EXPECT_EQ(shard_of({6}, sharding("{data,seq}"), mesh, mesh.device_at(Coordinates{1, 0})).value().offset, (Shape{3}));
  EXPECT_EQ(shard_of({6}, sharding("{seq,data}"), mesh, mesh.device_at(Coordinates{1, 0})).value().offset, (Shape{1}));
}

TEST(Sharding, refuses_with_both_numbers) {
  const Mesh mesh = Mesh::parse("data=2 tensor=8").value();
  const Status uneven = check_sharding({12, 3}, sharding("{tensor}{}"), mesh);
  ASSERT_FALSE(uneven.ok());
  EXPECT_NE(uneven.error().message.find("12"), std::string::npos);
  EXPECT_NE(uneven.error().message.find("8"), std::string::npos);
  EXPECT_FALSE(check_sharding({8, 8}, sharding("{data}{data}"), mesh).ok());
  EXPECT_FALSE(check_sharding({8, 8}, sharding("{data}"), mesh).ok());
  EXPECT_EQ(check_sharding({8}, sharding("{dta}"), mesh).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(check_sharding({}, sharding(""), mesh).ok());
}

}  // namespace
}  // namespace systole
