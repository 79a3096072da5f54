#include "execute/checkpoint/coding.h"

#include <gtest/gtest.h>

#include <random>

#include "execute/checkpoint/restore_parts.h"
#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/faulty.h"

namespace systole::checkpoint {
namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::mt19937_64 random(5);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Coding, FramesComeBack) {
  for (const bool zstd : {false, true}) {
    for (const bool encrypted : {false, true}) {
      if (!zstd && !encrypted) continue;
      const std::optional<Key256> key = encrypted ? std::optional(random_key()) : std::nullopt;
      const std::vector<std::byte> raw = noise(static_cast<std::size_t>(2 * kFrameBytes + 17));
      ChunkEncoder encoder(Bytes(raw.size()), zstd, key);
      std::vector<std::vector<std::byte>> stored;
      for (std::size_t at = 0; at < raw.size(); at += kFrameBytes) {
        const auto frame =
            encoder.frame(std::span(raw).subspan(at, std::min<std::size_t>(kFrameBytes, raw.size() - at)));
        stored.emplace_back(frame.begin(), frame.end());
      }
      ChunkDecoder decoder(encoder.coding(), key);
      for (const std::size_t number : {2, 0, 1}) {  // any order
        std::vector<std::byte> spoiled = stored[number];
        const auto frame = decoder.frame(number, spoiled);
        ASSERT_TRUE(frame) << to_string(frame.error());
        EXPECT_TRUE(
            std::equal(frame->begin(), frame->end(), raw.begin() + static_cast<std::ptrdiff_t>(number) * kFrameBytes));
      }
      std::vector<std::byte> other = stored[0];
      const auto swapped = decoder.frame(1, other);
      if (encrypted) { EXPECT_FALSE(swapped) << "frame 0 in the place of frame 1"; }
      std::vector<std::byte> shorter(stored[0].begin(), stored[0].end() - 1);
      EXPECT_FALSE(decoder.frame(0, shorter));
    }
  }
}

TEST(Coding, OnlyWhatShrinksByATenthIsCompressed) {
  std::vector<std::byte> bytes = noise(100'000);
  EXPECT_FALSE(is_worth_compressing(bytes));
  std::fill(bytes.begin(), bytes.begin() + 8'000, std::byte{0});
  EXPECT_FALSE(is_worth_compressing(bytes)) << "8%";
  std::fill(bytes.begin(), bytes.begin() + 12'000, std::byte{0});
  EXPECT_TRUE(is_worth_compressing(bytes)) << "12%";
  EXPECT_FALSE(is_worth_compressing({}));
}

class Compressed : public testing::Test {
 protected:
  Compressed() : store_(make_memory_store()), folder_{objects_in(*store_), "c"} {
    noise_ = noise(static_cast<std::size_t>(3 * kFrameBytes));
    zeros_.resize(noise_.size());
    for (std::size_t i = 0; i < zeros_.size(); i += 4096) zeros_[i] = static_cast<std::byte>(i / 4096);
    options_.chunk_bytes = Bytes(3 * kFrameBytes);
    options_.compress = true;
  }
  Result<SaveReport> save_both(std::int64_t step) {
    SaveRequest request;
    request.step = step;
    const Shape shape{3 * kFrameBytes / 4};
    request.tensors = {{"noise", Role::parameter, DType::f32, shape, Box::whole(shape), noise_},
                       {"zeros", Role::state, DType::f32, shape, Box::whole(shape), zeros_}};
    return save(folder_, request, options_);
  }

  std::unique_ptr<Store> store_;
  Folder folder_;
  std::vector<std::byte> noise_, zeros_;
  SaveOptions options_;
};

TEST_F(Compressed, TheManifestSaysWhichChunkIs) {
  ASSERT_TRUE(save_both(1));
  const Manifest manifest = load_manifest(folder_, 1).value();
  ASSERT_EQ(manifest.chunks.size(), 2U);
  EXPECT_EQ(manifest.chunks[0].encoding(), Encoding::raw);
  EXPECT_EQ(manifest.chunks[1].encoding(), Encoding::zstd);
  EXPECT_LT(manifest.chunks[1].bytes.count(), 100'000);
  EXPECT_EQ(manifest.chunks[1].coding->frames.size(), 3U);
  const std::string text = read_text(*store_, folder_.manifest(1)).value();
  EXPECT_NE(text.find("\"encoding\":\"zstd\""), std::string::npos);
  EXPECT_EQ(to_text(parse_manifest(text, "m").value()), text);
  std::vector<std::byte> read(zeros_.size());
  const Checkpoint from = open_step(folder_, 1).value();
  ASSERT_TRUE(from.read("zeros", Box::whole({3 * kFrameBytes / 4}), read));
  EXPECT_EQ(read, zeros_);
}

TEST_F(Compressed, WhatIsThereAlreadyIsNotKeptTwice) {
  ASSERT_TRUE(save_both(1));
  const auto second = save_both(2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->stats.chunks_written, 0);
  EXPECT_EQ(second->stats.chunks_reused, 2);
  EXPECT_EQ(store_->list(folder_.chunks())->size(), 2U);
}

TEST_F(Compressed, AFewElementsTakeAFewFrames) {
  ASSERT_TRUE(save_both(1));
  const Checkpoint from = open_step(folder_, 1, Verify::lengths).value();
  const Coding coding = *from.manifest().chunks[1].coding;
  const Shape shape{3 * kFrameBytes / 4};
  std::vector<std::byte> into(400);
  const RestoreDestination target{"zeros", DType::f32, shape, Box{{kFrameBytes / 4 + 5}, {kFrameBytes / 4 + 105}},
                                  into};
  const auto report = restore_parts(from, std::span(&target, 1), 1);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->read.count(), coding.frames[1]);
  EXPECT_TRUE(std::equal(into.begin(), into.end(), zeros_.begin() + kFrameBytes + 20));
}

TEST_F(Compressed, AFlippedBitIsFoundWhicheverWayItIsRead) {
  ASSERT_TRUE(save_both(1));
  FaultyStore damaged(*store_);
  const Folder folder{objects_in(damaged), "c"};
  const ChunkFile chunk = load_manifest(folder, 1)->chunks[1];
  ASSERT_TRUE(damaged.flip_bit(folder.chunk(chunk.hash), chunk.bytes.count() / 2, 4));
  EXPECT_EQ(open_step(folder, 1).error().kind, ErrorKind::corrupt);
  std::vector<std::byte> into(zeros_.size());
  const Shape shape{3 * kFrameBytes / 4};
  const RestoreDestination target{"zeros", DType::f32, shape, Box::whole(shape), into};
  const auto restored = restore_parts(open_step(folder, 1, Verify::lengths).value(), std::span(&target, 1), 1);
  EXPECT_EQ(restored.error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace systole::checkpoint
