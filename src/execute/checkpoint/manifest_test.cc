#include "execute/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <random>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/base/hash.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/processor_time.h"

namespace systole::checkpoint {
namespace {

Manifest small() {
  Manifest manifest;
  manifest.step = 7;
  manifest.date = "2026-01-31T12:00:00Z";
  manifest.identity = {"gpt \"small\"\n", "00ff", "ab"};
  manifest.metric = 1.0 / 3;
  manifest.extra =
      Node::map({{"cursor", Node::map({{"row", 12}, {"epoch", 1}})}, {"seed", 18446744073709551615ULL}, {"rate", 0.1}});
  manifest.chunks = {{"0123456789abcdef0123456789abcdef", Bytes(100)}};
  manifest.tensors = {{"w",
                       Role::parameter,
                       DType::f32,
                       {2, 3},
                       {{{{0, 0}, {1, 3}}, 0, 0, Encoding::raw}, {{{1, 0}, {2, 3}}, 0, 64, Encoding::raw}}},
                      {"m", Role::state, DType::bf16, {}, {{{{}, {}}, 0, 98, Encoding::raw}}},
                      {"none", Role::parameter, DType::f32, {0}, {}}};
  return manifest;
}

// A text with a valid first line for any body: for bodies that no correct writer makes.
std::string sealed(std::string body, int version = kManifestVersion) {
  const std::string hash = to_hex(hash128(fmt::format("systole-checkpoint {}\n{}", version, body)));
  return fmt::format("{{\"format\":\"systole-checkpoint\",\"version\":{},\"hash\":\"{}\",\n{}", version, hash, body);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string body_of(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  return text.substr(text.find('\n') + 1);
}

TEST(Manifest, ReadsBackEqual) {
  const Manifest manifest = small();
  const std::string text = to_text(manifest);
  const auto read = parse_manifest(text, "m.json");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->step, manifest.step);
  EXPECT_EQ(read->date, manifest.date);
  EXPECT_EQ(read->identity, manifest.identity);
  EXPECT_EQ(read->metric, manifest.metric);
  EXPECT_EQ(read->extra, manifest.extra);
  EXPECT_EQ(read->chunks, manifest.chunks);
  EXPECT_EQ(read->tensors, manifest.tensors);
  EXPECT_EQ(to_text(*read), text);
  EXPECT_TRUE(parse_json(text, "m.json")) << "the whole text is JSON";
}

TEST(Manifest, EveryFlippedBitIsSeen) {
  const std::string text = to_text(small());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto read = parse_manifest(damaged, "m.json");
      ASSERT_FALSE(read) << at << " " << bit;
      ASSERT_EQ(read.error().kind, ErrorKind::corrupt) << to_string(read.error());
    }
  }
}

TEST(Manifest, EveryTruncationIsSeen) {
  const std::string text = to_text(small());
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto read = parse_manifest(text.substr(0, size), "m.json");
    ASSERT_FALSE(read) << size;
    ASSERT_EQ(read.error().kind, ErrorKind::corrupt);
  }
}

TEST(Manifest, ANewerVersionIsRefusedByName) {
  const auto read = parse_manifest(sealed("\"something\":\"else\"}\n", 2), "m.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::unsupported);
  EXPECT_NE(read.error().message.find("version 2"), std::string::npos);
}

TEST(Manifest, BodiesThatBreakARuleAreRefused) {
  const std::string body = body_of(small());
  ASSERT_TRUE(parse_manifest(sealed(body), "m.json"));
  const auto refusal = [&](const std::string& what, const std::string& by) {
    const auto read = parse_manifest(sealed(replaced(body, what, by)), "m.json");
    if (read) return std::string();
    EXPECT_EQ(read.error().kind, ErrorKind::corrupt) << what;
    return to_string(read.error());
  };
  EXPECT_NE(refusal("\"start\":[1,0]", "\"start\":[0,0]").find("overlap"), std::string::npos);
  EXPECT_NE(refusal("\"start\":[1,0]", "\"start\":[1,1]").find("cover 5 of 6"), std::string::npos);
  EXPECT_NE(refusal("\"end\":[2,3]", "\"end\":[3,3]"), "");
  EXPECT_NE(refusal("\"end\":[2,3]", "\"end\":[2]"), "");
  EXPECT_NE(refusal("\"offset\":64", "\"offset\":92").find("leaves its chunk"), std::string::npos);
  EXPECT_NE(refusal("\"offset\":64", "\"offset\":-1"), "");
  EXPECT_NE(refusal("\"offset\":64", "\"offset\":9223372036854775807"), "");
  EXPECT_NE(refusal("\"chunk\":0", "\"chunk\":1"), "");
  EXPECT_NE(refusal("\"bytes\":100", "\"bytes\":-100"), "");
  EXPECT_NE(refusal("\"shape\":[2,3]", "\"shape\":[4611686018427387904,4611686018427387904]"), "");
  EXPECT_NE(refusal("\"shape\":[0]", "\"shape\":[4611686018427387904]").find("impossible"), std::string::npos);
  EXPECT_NE(refusal("\"name\":\"m\"", "\"name\":\"w\"").find("twice"), std::string::npos);
  EXPECT_NE(refusal("\"name\":\"m\"", "\"name\":\"\""), "");
  EXPECT_NE(refusal("\"role\":\"state\"", "\"role\":\"other\""), "");
  EXPECT_NE(refusal("\"hash\":\"0123", "\"hash\":\"../3"), "") << "a chunk's name is a path";
  EXPECT_NE(refusal("\"extra\":{", "\"extra\":[{").substr(0, 1), "");
  EXPECT_NE(refusal("\"step\":7", "\"step\":-7"), "");
  EXPECT_NE(refusal("\"tensors\":[", "\"tensor\":["), "");
}

// A tensor of `rows` rows of `columns` pieces each; `box` gives the box of each piece.
Manifest cut_finely(std::int64_t rows, std::int64_t columns) {
  Manifest manifest = small();
  manifest.tensors = {{"w", Role::parameter, DType::f32, {rows, columns}, {}}};
  manifest.chunks[0].bytes = Bytes(rows * columns * 4);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      manifest.tensors[0].pieces.push_back({{{r, c}, {r + 1, c + 1}}, 0, 4 * (r * columns + c), Encoding::raw});
  return manifest;
}

Seconds time_to_check(const Manifest& manifest, const std::string& refused) {
  const Seconds began = processor_time();
  const Status checked = check(manifest);
  const Seconds took = processor_time() - began;
  EXPECT_EQ(checked.ok(), refused.empty());
  if (!checked.ok()) { EXPECT_NE(checked.error().message.find(refused), std::string::npos) << checked.error().message; }
  return took;
}

// Compared in pairs, each of these would take more than a minute.
TEST(Manifest, TheTimeToCheckPiecesIsThatOfASweep) {
  constexpr Seconds kMost(10.0);  // with sanitizers
  EXPECT_LT(time_to_check(cut_finely(1, 100'000), ""), kMost);
  EXPECT_LT(time_to_check(cut_finely(100'000, 1), ""), kMost);
  Manifest grid = cut_finely(316, 316);
  EXPECT_LT(time_to_check(grid, ""), kMost);
  grid.tensors[0].pieces[40'000] = grid.tensors[0].pieces[70'000];
  EXPECT_LT(time_to_check(grid, "overlap"), kMost);
  // Nested corners: each piece takes a row or a column of the remainder, so a cut separates only one piece.
  Manifest spiral = cut_finely(1, 1);
  TensorEntry& w = spiral.tensors[0];
  constexpr std::int64_t n = 50'000;
  w.shape = {n, n};
  w.pieces.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    w.pieces.push_back({{{i, i}, {i + 1, n}}, 0, 0, Encoding::raw});
    if (i + 1 < n) w.pieces.push_back({{{i + 1, i}, {n, i + 1}}, 0, 0, Encoding::raw});
  }
  spiral.chunks[0].bytes = Bytes(n * n * 4);
  EXPECT_LT(time_to_check(spiral, "no writer"), kMost);
}

TEST(Manifest, PiecesThatNoLineCutsAreHeldToTheRulesToo) {
  Manifest wheel = small();
  wheel.tensors = {{"w", Role::parameter, DType::f32, {3, 3}, {}}};
  const std::vector<Box> boxes = {
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 3}}, {{2, 1}, {3, 3}}, {{1, 0}, {3, 1}}, {{1, 1}, {2, 2}}};
  for (const Box& box : boxes) wheel.tensors[0].pieces.push_back({box, 0, 0, Encoding::raw});
  EXPECT_TRUE(check(wheel).ok());
  wheel.tensors[0].pieces[4].box = {{1, 1}, {3, 2}};
  EXPECT_NE(check(wheel).error().message.find("overlap"), std::string::npos);
}

TEST(Manifest, WhatThisVersionDoesNotKnowIsUnsupportedByName) {
  const std::string body = body_of(small());
  auto read = parse_manifest(sealed(replaced(body, "\"bf16\"", "\"f4\"")), "m.json");
  EXPECT_EQ(read.error().kind, ErrorKind::unsupported);
  EXPECT_NE(read.error().message.find("'f4'"), std::string::npos);
  read = parse_manifest(sealed(replaced(body, "\"raw\"", "\"lz4\"")), "m.json");
  EXPECT_EQ(read.error().kind, ErrorKind::unsupported);
  EXPECT_NE(read.error().message.find("'lz4'"), std::string::npos);
}

TEST(Manifest, FindsTheHashesThatATextNames) {
  const std::string hash = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(hashes_named_in("x\"" + hash + "\",\"" + hash + "0\" 0123 " + hash),
            (std::vector<std::string>{hash, hash}));
  EXPECT_TRUE(hashes_named_in("").empty());
}

// The version 1 checkpoint in golden/v1 was written once and must stay readable.
TEST(Manifest, GoldenVersion1Reads) {
  auto store = open_posix_store(std::string(SYSTOLE_SOURCE_DIR) + "/src/execute/checkpoint/golden");
  ASSERT_TRUE(store) << to_string(store.error());
  auto restored = open_newest({objects_in(**store), "v1"});
  ASSERT_TRUE(restored) << to_string(restored.error());
  EXPECT_EQ(restored->checkpoint.manifest().step, 100);
  EXPECT_EQ(verify_tiny(restored->checkpoint), "");
  EXPECT_EQ(restored->checkpoint.manifest().extra, Node::map({{"cursor", 12}}));
}

}  // namespace
}  // namespace systole::checkpoint
