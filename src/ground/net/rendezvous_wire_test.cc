#include "ground/net/rendezvous_wire.h"

#include <gtest/gtest.h>

#include "ground/base/philox.h"

namespace systole {
namespace {

std::span<const std::byte> payload(const std::vector<std::byte>& frame) { return std::span(frame).subspan(4); }

RendezvousRequest some_request() {
  return {.op = RendezvousOp::compare_and_set,
          .generation = 7,
          .holder = ~std::uint64_t{0},
          .number = -12,
          .wait_ms = 345,
          .key = "key",
          .value = std::string("a\0b", 3),
          .expected = ""};
}

TEST(RendezvousWire, what_is_written_reads_back) {
  RendezvousRequest request = some_request();
  EXPECT_EQ(parse_request(payload(encode(request))).value(), request);
  request.expected.reset();
  EXPECT_EQ(parse_request(payload(encode(request))).value(), request);
  const RendezvousReply reply{RendezvousOutcome::missing, -1, "1, 3", {{"a", "b", 5}, {"", "", -5}}};
  EXPECT_EQ(parse_reply(payload(encode(reply))).value(), reply);
  const std::vector<std::byte> frame = encode(reply);
  EXPECT_EQ(frame_length(std::span(frame).first<4>()), frame.size() - 4);
}

TEST(RendezvousWire, every_cut_and_every_addition_is_refused) {
  const std::vector<std::byte> request = encode(some_request());
  const std::vector<std::byte> reply = encode(RendezvousReply{RendezvousOutcome::ok, 1, "x", {{"a", "b", 5}}});
  for (std::size_t n = 4; n < request.size(); ++n)
    EXPECT_FALSE(parse_request(std::span(request).subspan(4, n - 4)).ok());
  for (std::size_t n = 4; n < reply.size(); ++n) EXPECT_FALSE(parse_reply(std::span(reply).subspan(4, n - 4)).ok());
  for (std::vector<std::byte> longer : {request, reply}) {
    longer.push_back(std::byte{0});
    EXPECT_FALSE(parse_request(payload(longer)).ok());
    EXPECT_FALSE(parse_reply(payload(longer)).ok());
  }
}

TEST(RendezvousWire, a_count_beyond_the_frame_takes_no_memory) {
  std::vector<std::byte> reply = encode(RendezvousReply{});
  for (std::size_t i = reply.size() - 4; i < reply.size(); ++i) reply[i] = std::byte{0xff};
  EXPECT_FALSE(parse_reply(payload(reply)).ok());
  const auto bytes = [](unsigned a, unsigned b, unsigned c, unsigned d) {
    return std::array{static_cast<std::byte>(a), static_cast<std::byte>(b), static_cast<std::byte>(c),
                      static_cast<std::byte>(d)};
  };
  EXPECT_FALSE(frame_length(bytes(0, 0, 0, 0)).has_value());
  EXPECT_FALSE(frame_length(bytes(0xff, 0xff, 0xff, 0xff)).has_value());
  EXPECT_FALSE(frame_length(bytes(1, 0, 16, 0)).has_value());
  EXPECT_EQ(frame_length(bytes(0, 0, 16, 0)), kRendezvousFrame);
}

TEST(RendezvousWire, random_bytes_never_do_more_than_fail) {
  PhiloxStream random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = encode(some_request());
    bytes.erase(bytes.begin(), bytes.begin() + 4);
    const std::uint64_t changes = 1 + random.below(6);
    for (std::uint64_t c = 0; c < changes; ++c)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    if (const Result<RendezvousRequest> request = parse_request(bytes); request.ok()) {
      EXPECT_EQ(parse_request(payload(encode(*request))).value(), *request);
    }
    (void)parse_reply(bytes);
  }
}

}  // namespace
}  // namespace systole
