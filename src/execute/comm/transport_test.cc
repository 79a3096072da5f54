// What all transports share: bytes arrive whole and in order; if ranks disagree, do not come or leave, the right one is
// named. On threads.

#include "execute/runtime/transport.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string_view>
#include <thread>

#include "execute/comm/testing/tested_transports.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;

class EachTransport : public testing::TestWithParam<const char*> {
 protected:
  Transports connect(std::int32_t n, Seconds patience) { return connect_(n, patience); }
  std::vector<Status> on_ranks(std::int32_t n, Seconds patience,
                               const std::function<Status(std::int32_t, Transport&)>& body) {
    return results_on(connect(n, patience), body);
  }

 private:
  ConnectRanks connect_ = ranks_over(GetParam());
};
using Messages = EachTransport;  // also over rings shorter than messages

std::string name_of_param(const testing::TestParamInfo<const char*>& info) { return info.param; }
INSTANTIATE_TEST_SUITE_P(Over, EachTransport, testing::Values("loopback", "tcp", "tls"), name_of_param);
INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::Values("loopback_256", "loopback_4096", "loopback", "tcp", "tls"),
                         name_of_param);

// Random messages of random sizes in random pieces, thousands of them.
TEST_P(Messages, messages_arrive_whole_and_in_order) {
  constexpr std::int32_t kRanks = 4;
  const auto byte_of = [](int round, std::int32_t source, std::int32_t target, int k, std::size_t i) {
    return static_cast<std::byte>(round * 31 + source * 7 + target * 3 + k + static_cast<int>(i * 13 + i / 251));
  };
  const std::string_view over = GetParam();
  const std::size_t most = over == "loopback_256" ? 4'000 : over == "loopback_4096" ? 20'000 : 900'000;
  const auto body = [&](std::int32_t me, Transport& transport) -> Status {
    std::mt19937 random(5);  // the same on every rank
    std::int64_t written = 0;
    for (int round = 0; round < (over == "loopback_256" ? 30 : 100); ++round) {
      std::vector<Bits> sent, got;
      std::vector<std::array<int, 3>> ends;  // source, target, k
      for (std::int32_t a = 0; a < kRanks; ++a) {
        for (std::int32_t b = 0; b < kRanks; ++b) {
          const auto count = a == b ? 0 : static_cast<int>(random() % 3);
          for (int k = 0; k < count; ++k) {
            const std::size_t size = random() % 4 == 0 ? random() % most : random() % 300;
            if (a == me) sent.emplace_back(size), written += static_cast<std::int64_t>(size);
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
          out.push_back(message_to(b, bytes));
        } else {
          in.push_back(message_from(a, got[in.size()]));
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
    EXPECT_EQ(transport.bytes_written(), Bytes(written)) << "payload, and nothing twice";
    return {};
  };
  for (const Status& status : on_ranks(kRanks, Seconds(20.0), body)) {
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

// Sums of rows with an odd number of f32, from pieces cut where the transport likes.
TEST_P(EachTransport, rows_are_combined_in_the_order_of_the_list) {
  constexpr std::int64_t kRows = 1013, kWide = 37, kStride = 41;
  const auto add = [](std::byte* into, const std::byte* piece, std::int64_t elements) {
    for (std::int64_t i = 0; i < elements; ++i) {
      reinterpret_cast<float*>(into)[i] =
          reinterpret_cast<float*>(into)[i] * 2 + reinterpret_cast<const float*>(piece)[i];
    }
  };
  const auto body = [&](std::int32_t me, Transport& transport) -> Status {
    std::vector<float> x(kRows * kStride), sum(kRows * kStride, 1.0F);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(me * 1000) + static_cast<float>(i % 500);
    const Bytes bytes(kRows * kWide * 4), row(kWide * 4), stride(kStride * 4);
    const auto* data = reinterpret_cast<const std::byte*>(x.data());
    auto* into = reinterpret_cast<std::byte*>(sum.data());
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (std::int32_t r = 0; r < 3; ++r) {
      if (r != me) out.push_back({r, data, bytes, row, stride});
      if (r != me)
        in.push_back({r, into, bytes, row, stride, add, Bytes(4), Bytes(4), static_cast<int>(in.size()) - 1});
    }
    TRY(transport.exchange({{1, 0, 0, 1}, out, in}));
    const std::int32_t first = me == 0 ? 1 : 0, second = me == 2 ? 1 : 2;
    for (std::int64_t i = 0; i < kRows * kStride; ++i) {
      const bool inside = i % kStride < kWide;
      const auto value = static_cast<float>(i % 500);
      const float expected =
          inside ? (2 + static_cast<float>(first * 1000) + value) * 2 + static_cast<float>(second * 1000) + value
                 : 1.0F;
      if (sum[static_cast<std::size_t>(i)] != expected)
        return error(ErrorKind::internal, "element {}: {}, not {}", i, sum[static_cast<std::size_t>(i)], expected);
    }
    return {};
  };
  for (const Status& status : on_ranks(3, Seconds(20.0), body)) EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_P(EachTransport, a_mismatch_names_both_ranks_and_both_collectives) {
  const auto shapes = on_ranks(
      2, Seconds(10.0), [](std::int32_t r, Transport& t) { return run_once(t, sum_over(2, {r == 0 ? 100 : 102})); });
  for (const Status& status : shapes)
    expect_names(status, ErrorKind::invalid, {"rank 0", "rank 1", "all_reduce #0, exchange 0 of 20"});

  const auto kinds = on_ranks(2, Seconds(10.0), [](std::int32_t r, Transport& t) {
    CollectiveCall call = sum_over(2, {100});
    if (r == 1) call.kind = CollectiveKind::all_gather;
    return run_once(t, call);
  });
  for (const Status& status : kinds) expect_names(status, ErrorKind::invalid, {"all_reduce #0", "all_gather #0"});

  // The same bytes with another dtype.
  const auto dtypes = on_ranks(2, Seconds(10.0), [](std::int32_t r, Transport& t) {
    CollectiveCall call = sum_over(2, {100});
    if (r == 1) call.dtype = DType::i32;
    return run_once(t, call);
  });
  for (const Status& status : dtypes) expect_names(status, ErrorKind::invalid, {"rank 0", "rank 1", "shape"});
}

TEST_P(EachTransport, a_sequence_that_slipped_names_both) {
  const auto results = on_ranks(2, Seconds(10.0), [](std::int32_t r, Transport& t) -> Status {
    Bits x(8), y(8);
    const std::vector<Outgoing> out{message_to(1 - r, x)};
    const std::vector<Incoming> in{message_from(1 - r, y)};
    return t.exchange({{r == 0 ? 17U : 16U, 0, 0, 1}, out, in});
  });
  for (const Status& status : results) expect_names(status, ErrorKind::invalid, {"all_reduce #17", "all_reduce #16"});
}

// All ranks name it that wait for it directly or indirectly: in a ring only one neighbour waits directly.
TEST_P(EachTransport, a_rank_that_never_comes_to_a_collective_is_named_by_all) {
  for (const auto algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct}) {
    const auto began = std::chrono::steady_clock::now();
    const auto results = on_ranks(5, Seconds(0.6), [&](std::int32_t r, Transport& t) -> Status {
      CollectiveCall call = sum_over(5, {1000});
      call.algorithm = algorithm;
      return r == 3 ? Status() : run_once(t, call);  // its transport lives until all have ended
    });
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8));
    for (const std::size_t r : {0, 1, 2, 4}) expect_names(results[r], ErrorKind::io, {"for rank 3", "all_reduce #0"});
  }
}

TEST_P(EachTransport, who_is_slow_but_moves_is_waited_for) {
  const auto results = on_ranks(3, Seconds(1.0), [](std::int32_t r, Transport& t) -> Status {
    for (int i = 0; i < 4; ++i) {
      if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      TRY(run_once(t, sum_over(3, {1000})));
    }
    return {};
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_P(EachTransport, after_an_error_it_is_of_no_use) {
  constexpr Seconds kPatience(1.0);
  on_ranks(2, kPatience, [&](std::int32_t r, Transport& t) -> Status {
    if (r == 1) return {};  // its transport stays alive
    const Status first = run_once(t, sum_over(2, {10}));
    EXPECT_FALSE(first.ok());
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(run_once(t, sum_over(2, {10})).error().message, first.error().message);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::duration<double>(kPatience.count()))
        << "it waits no second time";
    return first;
  });
}

TEST_P(EachTransport, a_rank_that_has_left_is_named_at_once_by_all) {
  Transports transports = connect(4, Seconds(30.0));
  transports[2].reset();
  const auto began = std::chrono::steady_clock::now();
  std::vector<Status> results(4);
  std::vector<std::jthread> threads;
  for (const std::size_t r : {0, 1, 3}) {
    CollectiveCall call = sum_over(4, {1000});
    call.algorithm = CollectiveAlgorithm::ring;
    threads.emplace_back([&, r, call] { results[r] = run_once(*transports[r], call); });
  }
  threads.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const std::size_t r : {0, 1, 3}) expect_names(results[r], ErrorKind::io, {"lost rank 2", "it has left"});
}

// A message sent before a rank left is still received.
TEST_P(EachTransport, last_words_are_heard) {
  Transports transports = connect(2, Seconds(5.0));
  const Bits x(100, std::byte{7});
  Bits y(100);
  const std::vector<Outgoing> out{message_to(0, x)};
  const std::vector<Incoming> in{message_from(1, y)};
  ASSERT_TRUE(transports[1]->exchange({{0, 4, 0, 0}, out, {}}).ok());
  transports[1].reset();
  ASSERT_TRUE(transports[0]->exchange({{0, 4, 0, 0}, {}, in}).ok());
  EXPECT_EQ(y, x);
}

TEST_P(EachTransport, abort_from_another_thread_ends_all_waits) {
  Transports transports = connect(3, Seconds(30.0));
  std::vector<Status> results(2);
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] { results[r] = run_once(*transports[r], sum_over(3, {100})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  transports[0]->abort("a test asked for it");
  threads.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const Status& status : results) expect_names(status, ErrorKind::interrupted, {"a test asked for it"});
  EXPECT_FALSE(run_once(*transports[2], sum_over(3, {100})).ok());
}

TEST_P(EachTransport, one_rank_alone_needs_nobody) {
  Transports transports = connect(1, Seconds(5.0));
  const auto communicator = make_communicator(*transports[0], Mesh()).value();
  EXPECT_TRUE(communicator->barrier().ok());
  std::byte word{3};
  EXPECT_TRUE(communicator->broadcast({&word, 1}, 0).ok());
}

}  // namespace
}  // namespace systole
