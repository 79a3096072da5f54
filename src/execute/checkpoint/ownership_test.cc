#include "execute/checkpoint/ownership.h"

#include <gtest/gtest.h>

namespace systole::checkpoint {
namespace {

Sharding sharding(const char* text) { return Sharding::parse(text).value(); }
Mesh mesh(const char* text) { return Mesh::parse(text).value(); }

TEST(Ownership, PartsAreCeilAndTheLastAreShortOrEmpty) {
  const Mesh eight = mesh("x=8");
  std::vector<std::string> boxes;
  for (std::int64_t device = 0; device < 8; ++device)
    boxes.push_back(to_string(box_on({10, 3}, sharding("{x}{}"), eight, device).value()));
  EXPECT_EQ(boxes, (std::vector<std::string>{"[0:2, 0:3]", "[2:4, 0:3]", "[4:6, 0:3]", "[6:8, 0:3]", "[8:10, 0:3]",
                                             "[10:10, 0:3]", "[10:10, 0:3]", "[10:10, 0:3]"}));
  EXPECT_EQ(to_string(box_on({5, 3}, sharding("{x}{}"), mesh("x=3"), 2).value()), "[4:5, 0:3]");
  EXPECT_EQ(to_string(padded_box_on({5, 3}, sharding("{x}{}"), mesh("x=3"), 2).value()), "[4:6, 0:3]");
}

TEST(Ownership, TwoAxesOnADimCutItOutermostFirst) {
  const Mesh six = mesh("a=2 b=3");
  EXPECT_EQ(to_string(box_on({12}, sharding("{a,b}"), six, 4).value()), "[8:10]");
  EXPECT_EQ(to_string(box_on({12}, sharding("{b,a}"), six, 4).value()), "[6:8]");
  EXPECT_EQ(to_string(box_on({}, sharding(""), six, 4).value()), "[]");
}

// If the size divides evenly, the shards are those of ground/mesh.
TEST(Ownership, AgreesWithShardOf) {
  const Mesh six = mesh("a=2 b=3");
  for (const char* text : {"{a}{b}", "{b}{a}", "{a,b}{}", "{}{b,a}", "{}{}", "{b}{}"}) {
    for (std::int64_t device = 0; device < 6; ++device) {
      const Shard shard = shard_of({12, 18}, sharding(text), six, device).value();
      const Box box = box_on({12, 18}, sharding(text), six, device).value();
      EXPECT_EQ(box.start, shard.offset) << text;
      EXPECT_EQ(box.shape(), shard.size) << text;
    }
  }
}

TEST(Ownership, WhatDoesNotFitIsRefusedByName) {
  const LaidTensor bad{"w", Role::parameter, DType::f32, {4, 4}, sharding("{a}{a}")};
  const auto refused = assign_owners(std::span(&bad, 1), mesh("a=2"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'w'"), std::string::npos) << refused.error().message;
  EXPECT_EQ(box_on({4}, sharding("{z}"), mesh("a=2"), 0).error().kind, ErrorKind::not_found);
  EXPECT_EQ(box_on({4, 4}, sharding("{a}"), mesh("a=2"), 0).error().kind, ErrorKind::invalid);
}

std::vector<LaidTensor> model(const char* matrix, const char* vector) {
  std::vector<LaidTensor> tensors;
  for (int layer = 0; layer < 6; ++layer) {
    tensors.push_back({fmt::format("blocks.{}.w", layer), Role::parameter, DType::f32, {13, 29}, sharding(matrix)});
    tensors.push_back({fmt::format("blocks.{}.b", layer), Role::parameter, DType::bf16, {29}, sharding(vector)});
  }
  tensors.push_back({"embed", Role::parameter, DType::f32, {97, 13}, sharding(matrix)});
  tensors.push_back({"steps", Role::state, DType::i64, {}, sharding("")});
  tensors.push_back({"none", Role::state, DType::f32, {0, 3}, sharding(matrix)});
  return tensors;
}

// Every element of every tensor has exactly one owner; counts element by element.
TEST(Ownership, EveryElementHasOneOwner) {
  for (const char* text : {"", "x=2", "x=3", "x=2 y=2", "x=2 y=3", "x=4 y=2", "y=8 x=1"}) {
    for (const char* matrix : {"{}{}", "{x}{}", "{}{x}", "{x,y}{}", "{y}{x}", "{}{y,x}"}) {
      const Mesh on = mesh(text);
      const std::string used(matrix);
      if (used.find('x') != used.npos && !on.find("x").ok()) continue;
      if (used.find('y') != used.npos && !on.find("y").ok()) continue;
      const auto tensors = model(matrix, "{}");
      const auto owned = assign_owners(tensors, on).value();
      ASSERT_EQ(static_cast<std::int64_t>(owned.size()), on.num_devices());
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        std::vector<std::byte> owners(static_cast<std::size_t>(num_elements(tensors[t].shape)));
        for (const auto& list : owned) {
          for (const OwnedBox& one : list) {
            if (one.tensor != t) continue;
            const std::vector<std::byte> ones(static_cast<std::size_t>(one.box.num_elements()), std::byte{1});
            std::vector<std::byte> before(ones.size());
            copy_part(one.box, 1, Box::whole(tensors[t].shape), owners, one.box, before);
            for (const std::byte b : before) ASSERT_EQ(b, std::byte{0}) << text << " " << matrix << " twice";
            copy_part(one.box, 1, one.box, ones, Box::whole(tensors[t].shape), owners);
          }
        }
        for (const std::byte b : owners) ASSERT_EQ(b, std::byte{1}) << text << " " << matrix << " nobody";
      }
    }
  }
}

TEST(Ownership, ReplicatedTensorsAreSharedOutByBytes) {
  const auto tensors = model("{}{}", "{}");
  std::int64_t largest = 0, all = 0;
  for (const LaidTensor& tensor : tensors) {
    const std::int64_t bytes = bytes_of(tensor.dtype, tensor.shape).count();
    largest = std::max(largest, bytes);
    all += bytes;
  }
  for (const char* text : {"x=2", "x=3", "x=4 y=2"}) {
    const Mesh on = mesh(text);
    const auto owned = assign_owners(tensors, on).value();
    EXPECT_EQ(owned, assign_owners(tensors, on).value());
    for (const auto& list : owned) {
      std::int64_t bytes = 0;
      for (const OwnedBox& one : list) bytes += one.box.num_elements() * size_of(tensors[one.tensor].dtype);
      EXPECT_LE(bytes, all / on.num_devices() + largest) << text;
    }
  }
}

}  // namespace
}  // namespace systole::checkpoint
