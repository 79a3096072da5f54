// What a transport says when its ranks do not agree, do not come, or leave; on threads.
#include "execute/comm/ring_transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "execute/comm/collectives.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;

Outgoing to(std::int32_t rank, const Bits& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}
Incoming from(std::int32_t rank, Bits& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}

std::vector<Status> on_ranks(std::int32_t n, const RingOptions& options,
                             const std::function<Status(std::int32_t, Transport&)>& body,
                             std::optional<std::int64_t> ring_bytes = {}) {
  auto transports = loopback(n, options, ring_bytes).value();
  std::vector<Status> results(static_cast<std::size_t>(n));
  {
    std::vector<std::jthread> threads;
    for (std::int32_t r = 0; r < n; ++r) {
      threads.emplace_back(
          [&, r] { results[static_cast<std::size_t>(r)] = body(r, *transports[static_cast<std::size_t>(r)]); });
    }
  }
  return results;
}

Status all_reduce(Transport& transport, const CollectiveCall& call, int times = 1) {
  const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", transport.num_ranks()}}).value()));
  Bits x(static_cast<std::size_t>(bytes_of(call.dtype, call.shape).count() * call.parts)), y(x.size());
  const auto prepared = TRY(communicator->prepare(call, x.data(), y.data(), nullptr));
  WorkCounters counters;
  for (int i = 0; i < times; ++i) TRY(communicator->run(*prepared, counters));
  return {};
}

CollectiveCall sum_over(std::int64_t parts, Shape shape) {
  return {CollectiveKind::all_reduce, "data", parts, DType::f32, std::move(shape)};
}

void expect_names(const Status& status, ErrorKind kind, std::initializer_list<const char*> parts) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, kind) << status.error().message;
  for (const char* part : parts)
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

// Random messages of random sizes in random pieces, thousands of them: what arrives is what was sent, in order.
TEST(RingTransport, messages_arrive_whole_and_in_order) {
  constexpr std::int32_t kRanks = 4;
  const auto byte_of = [](int round, std::int32_t source, std::int32_t target, int k, std::size_t i) {
    return static_cast<std::byte>(round * 31 + source * 7 + target * 3 + k + static_cast<int>(i * 13 + i / 251));
  };
  const auto body = [&](std::int32_t me, Transport& transport) -> Status {
    std::mt19937 random(5);  // the same on every rank
    for (int round = 0; round < 150; ++round) {
      std::vector<Bits> sent, got;
      std::vector<std::array<int, 3>> ends;  // source, target, k
      for (std::int32_t a = 0; a < kRanks; ++a) {
        for (std::int32_t b = 0; b < kRanks; ++b) {
          const auto count = static_cast<int>(random() % 3);
          for (int k = 0; k < (a == b ? 0 : count); ++k) {
            const std::size_t size = random() % 4 == 0 ? random() % 20000 : random() % 300;
            if (a == me) sent.emplace_back(size);
            if (b == me) got.emplace_back(size);
            if (a == me || b == me) ends.push_back({a, b, k});
          }
        }
      }
      std::vector<Outgoing> out;
      std::vector<Incoming> in;
      for (const auto& [a, b, k] : ends) {
        if (a == me) {
          Bits& bytes = sent[out.size()];
          for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(round, a, b, k, i);
          out.push_back(to(b, bytes));
        } else {
          in.push_back(from(a, got[in.size()]));
        }
      }
      TRY(transport.exchange({{static_cast<std::uint32_t>(round), 3, 0, 7}, out, in}));
      std::size_t at = 0;
      for (const auto& [a, b, k] : ends) {
        if (b != me) continue;
        for (std::size_t i = 0; i < got[at].size(); ++i) {
          if (got[at][i] != byte_of(round, a, b, k, i)) return error(ErrorKind::internal, "byte {} of {}", i, round);
        }
        ++at;
      }
    }
    return {};
  };
  for (const std::int64_t ring_bytes : {256, 4096, 1 << 18}) {
    for (const Status& status : on_ranks(kRanks, {Seconds(20)}, body, ring_bytes))
      EXPECT_TRUE(status.ok()) << ring_bytes << ": " << status.error().message;
  }
}

TEST(RingTransport, a_mismatch_names_both_ranks_and_both_collectives) {
  const auto shapes = on_ranks(
      2, {Seconds(10)}, [](std::int32_t r, Transport& t) { return all_reduce(t, sum_over(2, {r == 0 ? 100 : 102})); });
  for (const Status& status : shapes)
    expect_names(status, ErrorKind::invalid, {"rank 0", "rank 1", "all_reduce #0, step 0 of 20"});

  const auto kinds = on_ranks(2, {Seconds(10)}, [](std::int32_t r, Transport& t) {
    CollectiveCall call = sum_over(2, {100});
    if (r == 1) call.kind = CollectiveKind::all_gather;
    return all_reduce(t, call);
  });
  for (const Status& status : kinds) expect_names(status, ErrorKind::invalid, {"all_reduce #0", "all_gather #0"});

  // The same bytes of another type.
  const auto dtypes = on_ranks(2, {Seconds(10)}, [](std::int32_t r, Transport& t) {
    CollectiveCall call = sum_over(2, {100});
    if (r == 1) call.dtype = DType::i32;
    return all_reduce(t, call);
  });
  for (const Status& status : dtypes) expect_names(status, ErrorKind::invalid, {"rank 0", "rank 1", "shape"});
}

TEST(RingTransport, a_sequence_that_slipped_names_both) {
  const auto results = on_ranks(2, {Seconds(10)}, [](std::int32_t r, Transport& t) -> Status {
    Bits x(8), y(8);
    const std::vector<Outgoing> out{to(1 - r, x)};
    const std::vector<Incoming> in{from(1 - r, y)};
    return t.exchange({{r == 0 ? 17U : 16U, 0, 0, 1}, out, in});
  });
  for (const Status& status : results) expect_names(status, ErrorKind::invalid, {"all_reduce #17", "all_reduce #16"});
}

TEST(RingTransport, a_rank_that_never_comes_is_named_within_the_deadline) {
  const auto began = std::chrono::steady_clock::now();
  const auto results = on_ranks(4, {Seconds(0.5)}, [](std::int32_t r, Transport& t) -> Status {
    if (r != 2) return all_reduce(t, sum_over(4, {1000}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return {};
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const std::size_t r : {0, 1, 3}) expect_names(results[r], ErrorKind::io, {"for rank 2", "all_reduce #0"});
}

// In a ring only one neighbour waits for the missing rank; the others wait for each other, and still name it.
TEST(RingTransport, the_cause_is_named_and_not_its_victims) {
  const auto results = on_ranks(5, {Seconds(0.5)}, [](std::int32_t r, Transport& t) -> Status {
    CollectiveCall call = sum_over(5, {1000});
    call.algorithm = CollectiveAlgorithm::ring;
    if (r != 3) return all_reduce(t, call);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return {};
  });
  for (const std::size_t r : {0, 1, 2, 4}) expect_names(results[r], ErrorKind::io, {"for rank 3", "all_reduce #0"});
}

TEST(RingTransport, after_an_error_it_is_of_no_use) {
  const auto results = on_ranks(2, {Seconds(0.3)}, [](std::int32_t r, Transport& t) -> Status {
    if (r == 1) return {};
    const Status first = all_reduce(t, sum_over(2, {10}));
    EXPECT_FALSE(first.ok());
    const auto began = std::chrono::steady_clock::now();
    const Status again = all_reduce(t, sum_over(2, {10}));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(100));
    EXPECT_EQ(again.error().message, first.error().message);
    return again;
  });
  EXPECT_FALSE(results[0].ok());
}

TEST(RingTransport, a_rank_that_has_left_is_named_at_once) {
  auto transports = loopback(2, {Seconds(30)}).value();
  transports[1].reset();
  const auto began = std::chrono::steady_clock::now();
  expect_names(all_reduce(*transports[0], sum_over(2, {10})), ErrorKind::io, {"lost rank 1", "it has left"});
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

// What a rank said before it left is still heard.
TEST(RingTransport, last_words_are_heard) {
  auto transports = loopback(2, {Seconds(5)}).value();
  const Bits x(100, std::byte{7});
  Bits y(100);
  const std::vector<Outgoing> out{to(0, x)};
  const std::vector<Incoming> in{from(1, y)};
  ASSERT_TRUE(transports[1]->exchange({{0, 4, 0, 0}, out, {}}).ok());
  transports[1].reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  ASSERT_TRUE(transports[0]->exchange({{0, 4, 0, 0}, {}, in}).ok());
  EXPECT_EQ(y, x);
}

TEST(RingTransport, abort_from_another_thread_ends_all_waits) {
  auto transports = loopback(3, {Seconds(30)}).value();
  std::vector<Status> results(2);
  const auto began = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < 2; ++r)
      threads.emplace_back([&, r] { results[r] = all_reduce(*transports[r], sum_over(3, {100})); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    transports[0]->abort("a test asked for it");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const Status& status : results) expect_names(status, ErrorKind::interrupted, {"a test asked for it"});
  EXPECT_FALSE(all_reduce(*transports[2], sum_over(3, {100})).ok());
}

TEST(RingTransport, a_rank_comes_once) {
  const auto segment = Segment::in_process(2, 4096).value();
  const auto first = ring_transport(segment, 0).value();
  EXPECT_EQ(ring_transport(segment, 0).error().kind, ErrorKind::busy);
  EXPECT_EQ(ring_transport(segment, 2).error().kind, ErrorKind::invalid);
  EXPECT_EQ(ring_transport(segment, -1).error().kind, ErrorKind::invalid);
}

// A peer that writes what it likes into the words it shares is found out.
TEST(RingTransport, damaged_words_are_refused) {
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{63}}) {
    const auto segment = Segment::in_process(2, 4096).value();
    const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
    segment->ring(1, 0).written.store(wild);
    expect_names(all_reduce(*mine, sum_over(2, {100})), ErrorKind::corrupt, {"rank 0", "rank 1", "damaged"});
  }
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const auto segment = Segment::in_process(2, 4096).value();
    const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
    segment->ring(0, 1).read.store(wild);
    expect_names(all_reduce(*mine, sum_over(2, {1 << 14})), ErrorKind::corrupt, {"rank 0", "rank 1", "damaged"});
  }
  const auto segment = Segment::in_process(2, 4096).value();  // a header of nonsense
  const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
  std::memset(segment->ring_data(1, 0), 0xff, 64);
  segment->ring(1, 0).written.store(128);
  expect_names(all_reduce(*mine, sum_over(2, {100})), ErrorKind::invalid, {"rank 0", "rank 1"});
}

TEST(RingTransport, one_rank_alone_needs_nobody) {
  auto transports = loopback(1).value();
  const auto communicator = make_communicator(*transports[0], Mesh()).value();
  EXPECT_TRUE(communicator->barrier().ok());
  std::byte word{3};
  EXPECT_TRUE(communicator->broadcast({&word, 1}, 0).ok());
}

}  // namespace
}  // namespace systole
