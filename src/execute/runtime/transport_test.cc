#include "execute/runtime/transport.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "execute/runtime/communicator.h"

namespace systole {
namespace {

TEST(Transport, stamps_travel_as_64_bits) {
  const MessageStamp stamp{0xfedcb, 9, 0xbeef, 0xabcdef};
  const MessageStamp back = MessageStamp::unpacked(stamp.packed());
  EXPECT_EQ(back.sequence, stamp.sequence);
  EXPECT_EQ(back.kind, stamp.kind);
  EXPECT_EQ(back.step, stamp.step);
  EXPECT_EQ(back.shape, stamp.shape);
  EXPECT_EQ(MessageStamp::unpacked(MessageStamp{0x1fffff, 0, 0, 0}.packed()).sequence, 0xfffffU);
  EXPECT_EQ(to_string(MessageStamp{17, 0, 2, 1}), "all_reduce #17, exchange 2");
}

// Rows of a message compared with a plain copy, cut at every place.
TEST(Transport, rows_are_sent_and_placed_whatever_the_pieces) {
  constexpr std::int64_t kRows = 5, kRow = 6, kStride = 11;
  std::vector<std::byte> memory(kRows * kStride), placed(kRows * kStride, std::byte{0xee});
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  const Outgoing out{1, memory.data(), Bytes(kRows * kRow), Bytes(kRow), Bytes(kStride)};
  std::vector<std::byte> wire;
  for (std::int64_t r = 0; r < kRows; ++r)
    wire.insert(wire.end(), memory.begin() + r * kStride, memory.begin() + r * kStride + kRow);
  for (std::size_t piece = 1; piece <= wire.size(); ++piece) {
    std::vector<std::byte> sent(wire.size());
    std::ranges::fill(placed, std::byte{0xee});
    const Incoming in{0, placed.data(), out.bytes, out.row, out.stride};
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      const auto part = std::span(sent).subspan(at, std::min(piece, wire.size() - at));
      copy_out(out, Bytes(at), part);
      take_piece(in, Bytes(at), part);
    }
    EXPECT_EQ(sent, wire) << piece;
    for (std::size_t i = 0; i < placed.size(); ++i)
      ASSERT_EQ(placed[i], i % kStride < kRow ? memory[i] : std::byte{0xee}) << piece << " at " << i;
  }
}

// Long messages take another code path, here with unaligned addresses.
TEST(Transport, long_messages_are_placed_like_short_ones) {
  const std::size_t size = (9 << 20) + 13;
  std::vector<std::byte> wire(size), placed(size + 64, std::byte{0xee});
  for (std::size_t i = 0; i < size; ++i) wire[i] = static_cast<std::byte>(i * 7 + i / 4099);
  for (const std::size_t skew : {0, 1, 15, 33}) {
    const Bytes bytes(size);
    const Incoming in{0, placed.data() + skew, bytes, bytes, bytes};
    std::size_t piece = 1;
    for (std::size_t at = 0; at < size; at += piece, piece = piece * 3 + 1) {
      piece = std::min(piece, size - at);
      take_piece(in, Bytes(at), std::span(wire).subspan(at, piece));
    }
    EXPECT_TRUE(std::equal(wire.begin(), wire.end(), placed.begin() + static_cast<std::ptrdiff_t>(skew))) << skew;
    EXPECT_EQ(placed[skew + size], std::byte{0xee});
  }
}

// Two bytes on the wire, four in place.
TEST(Transport, pieces_are_combined_into_wider_elements) {
  const std::vector<std::uint16_t> wire{1, 2, 3, 4, 5};
  std::vector<std::uint32_t> sums(5, 100);
  const CombinePiece add = [](std::byte* into, const std::byte* piece, std::int64_t elements) {
    for (std::int64_t i = 0; i < elements; ++i)
      reinterpret_cast<std::uint32_t*>(into)[i] += reinterpret_cast<const std::uint16_t*>(piece)[i];
  };
  Incoming in{0, reinterpret_cast<std::byte*>(sums.data()), Bytes(10), Bytes(10), Bytes(0), add, Bytes(2), Bytes(4)};
  take_piece(in, Bytes(0), std::as_bytes(std::span(wire)).first(4));
  take_piece(in, Bytes(4), std::as_bytes(std::span(wire)).subspan(4));
  EXPECT_EQ(sums, (std::vector<std::uint32_t>{101, 102, 103, 104, 105}));
}

TEST(Transport, errors_name_ranks_and_collectives) {
  const std::string text =
      to_string(mismatched_message(3, {17, 0, 1, 0xaaaaaa}, Bytes(64), 5, {16, 2, 0, 0xbbbbbb}, Bytes(32)));
  for (const char* part :
       {"rank 3", "rank 5", "all_reduce #17, exchange 1 of 64 B", "all_gather #16, exchange 0 of 32 B", "hint"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(missing_rank(0, 2, {17, 0, 1, 0}, Seconds(2), "its process is stopped").message.find("rank 2"),
            std::string::npos);
}

TEST(Communicator, workspace_is_what_the_header_says) {
  CollectiveCall call{CollectiveKind::all_reduce, "data", 4, DType::bf16, {10, 10}};
  EXPECT_EQ(collective_workspace(call), Bytes(128));  // 25 f32
  call.dtype = DType::f32;
  EXPECT_EQ(collective_workspace(call), Bytes(0));
  call.kind = CollectiveKind::reduce_scatter;
  EXPECT_EQ(collective_workspace(call), Bytes(0));
  call.algorithm = CollectiveAlgorithm::ring;
  EXPECT_EQ(collective_workspace(call), Bytes(448));
  call.parts = 1;
  EXPECT_EQ(collective_workspace(call), Bytes(0));
}

}  // namespace
}  // namespace systole
