#include "execute/checkpoint/box.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "execute/checkpoint/pack.h"

namespace systole::checkpoint {
namespace {

TEST(Box, ShapeIntersectionAndBounds) {
  const Box a{{0, 2}, {3, 6}}, b{{1, 0}, {5, 3}};
  EXPECT_EQ(a.shape(), (Shape{3, 4}));
  EXPECT_EQ(intersect(a, b), (Box{{1, 2}, {3, 3}}));
  EXPECT_FALSE(intersect(a, Box{{3, 2}, {4, 6}}));
  EXPECT_EQ(intersect(Box{}, Box{}), Box{});  // scalars
  EXPECT_EQ(Box{}.num_elements(), 1);
  EXPECT_TRUE(check_inside(a, {3, 6}));
  EXPECT_FALSE(check_inside(a, {3, 5}));
  EXPECT_FALSE(check_inside(a, {3, 6, 1}));
  EXPECT_FALSE(check_inside(Box{{-1}, {1}}, {4}));
  EXPECT_FALSE(check_inside(Box{{2}, {1}}, {4}));
  EXPECT_EQ(to_string(a), "[0:3, 2:6]");
}

TEST(Box, ElementCountsThatOverflowAreRefused) {
  EXPECT_EQ(checked_elements({3, 4}), 12);
  EXPECT_EQ(checked_elements({}), 1);
  EXPECT_EQ(checked_elements({0, std::int64_t{1} << 40}), 0);
  EXPECT_FALSE(checked_elements({-1}));
  EXPECT_FALSE(checked_elements({std::int64_t{1} << 40, std::int64_t{1} << 40}));
  EXPECT_FALSE(checked_elements({0, std::int64_t{1} << 40, std::int64_t{1} << 40}));
}

TEST(Box, CutsAreContiguousAndCoverInOrder) {
  const Box box{{1, 2, 3}, {4, 7, 10}};  // 3 × 5 × 7
  for (std::int64_t limit : {1, 2, 6, 7, 8, 34, 35, 36, 104, 105, 1000}) {
    std::int64_t next = 0;
    for (const Box& piece : cut(box, limit)) {
      EXPECT_LE(piece.num_elements(), limit);
      for_each_run(piece, box, piece, [&](const checkpoint::Run& run) -> Status {
        EXPECT_EQ(run.from, next);
        next += run.count;
        return {};
      }).value();
    }
    EXPECT_EQ(next, 105) << limit;
  }
  EXPECT_TRUE(cut(Box{{2}, {2}}, 4).empty());
  EXPECT_EQ(cut(Box{}, 4), std::vector<Box>{Box{}});
}

// Every element of random parts of random boxes is copied to the place where an index-by-index copy puts it.
TEST(Box, CopiesEqualTheObviousLoop) {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int round = 0; round < 300; ++round) {
    Box from, to;
    const auto ndim = static_cast<std::size_t>(pick(0, 4));
    for (std::size_t d = 0; d < ndim; ++d) {
      from.start.push_back(pick(0, 3));
      from.end.push_back(from.start[d] + pick(1, 4));
      to.start.push_back(pick(0, 3));
      to.end.push_back(to.start[d] + pick(1, 4));
    }
    const auto part = intersect(from, to);
    if (!part) continue;
    std::vector<std::byte> source(static_cast<std::size_t>(from.num_elements())),
        target(static_cast<std::size_t>(to.num_elements()));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
    std::vector<std::byte> expected = target;
    std::vector<std::int64_t> index = part->start;
    const auto place = [&](const Box& box) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < ndim; ++d) at = at * (box.end[d] - box.start[d]) + index[d] - box.start[d];
      return static_cast<std::size_t>(at);
    };
    for (std::int64_t left = part->num_elements(); left > 0; --left) {
      expected[place(to)] = source[place(from)];
      for (std::size_t d = ndim; d > 0 && ++index[d - 1] == part->end[d - 1]; --d) index[d - 1] = part->start[d - 1];
    }
    copy_part(*part, 1, from, source, to, target);
    EXPECT_EQ(target, expected) << to_string(from) << to_string(to);
  }
}

TEST(Pack, SmallTensorsShareAFileAndLargeOnesAreCut) {
  std::vector<std::byte> bytes(4096);
  std::iota(reinterpret_cast<unsigned char*>(bytes.data()),
            reinterpret_cast<unsigned char*>(bytes.data()) + bytes.size(), 0);
  const auto part = [&](const Shape& shape, int group) {
    return TensorPart{"t",
                      Role::parameter,
                      DType::f32,
                      shape,
                      Box::whole(shape),
                      std::span<const std::byte>(bytes).first(static_cast<std::size_t>(num_elements(shape) * 4)),
                      group};
  };
  const std::vector<TensorPart> parts = {part({5}, 0),     part({7}, 0), part({3}, 1),
                                         part({40, 8}, 0), part({0}, 0), part({2}, 1)};
  const auto chunks = pack(parts, Bytes(512));
  std::vector<std::int64_t> covered(parts.size());
  for (const PackedChunk& chunk : chunks) {
    EXPECT_LE(chunk.bytes, 512);
    std::int64_t end = 0;
    for (const PackedPiece& piece : chunk.pieces) {
      EXPECT_EQ(parts[piece.part].group, parts[chunk.pieces[0].part].group);
      EXPECT_EQ(piece.offset % kPieceAlignment, 0);
      EXPECT_GE(piece.offset, end);
      end = piece.offset + piece.bytes;
      EXPECT_EQ(piece.bytes, piece.box.num_elements() * 4);
      covered[piece.part] += piece.bytes;
    }
    EXPECT_EQ(end, chunk.bytes);
    std::vector<std::byte> file;
    ASSERT_TRUE(for_each_span(chunk, parts, [&](std::span<const std::byte> span) -> Status {
      for (const std::byte b : span) file.push_back(b);
      return {};
    }));
    ASSERT_EQ(static_cast<std::int64_t>(file.size()), chunk.bytes);
    for (const PackedPiece& piece : chunk.pieces) {
      std::vector<std::byte> expected(static_cast<std::size_t>(piece.bytes));
      copy_part(piece.box, 4, parts[piece.part].box, parts[piece.part].bytes, piece.box, expected);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), file.begin() + piece.offset));
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p)
    EXPECT_EQ(covered[p], static_cast<std::int64_t>(parts[p].bytes.size()));
  EXPECT_EQ(chunks.size(), 5U);  // 5+7 and a first cut, two more cuts, the rest; and group 1
}

}  // namespace
}  // namespace systole::checkpoint
