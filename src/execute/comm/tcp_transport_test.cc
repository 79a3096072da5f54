// Ranks over TCP on 127.0.0.1, as threads: what RingTransport is tested for, and what only a network does.
#include "execute/comm/tcp_transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "execute/comm/collectives.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;
using Transports = std::vector<std::unique_ptr<Transport>>;

Outgoing to(std::int32_t rank, const Bits& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}
Incoming from(std::int32_t rank, Bits& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}

class Tcp : public testing::Test {
 protected:
  RendezvousClient client() { return RendezvousClient::connect(server_->address(), token_).value(); }

  Transports meet(std::int32_t n, Seconds patience) {
    EXPECT_TRUE(client().erase("tcp/").ok());
    Transports transports(static_cast<std::size_t>(n));
    std::vector<std::jthread> threads;
    for (std::int32_t r = 0; r < n; ++r) {
      threads.emplace_back([this, r, n, patience, &transports] {
        RendezvousClient rendezvous = client();
        transports[static_cast<std::size_t>(r)] =
            tcp_transport(rendezvous, r, n, {.mesh = {.connect_time = Seconds(30.0)}, .patience = patience}).value();
      });
    }
    threads.clear();
    return transports;
  }

  std::vector<Status> on_ranks(std::int32_t n, Seconds patience,
                               const std::function<Status(std::int32_t, Transport&)>& body) {
    Transports transports = meet(n, patience);
    std::vector<Status> results(static_cast<std::size_t>(n));
    std::vector<std::jthread> threads;
    for (std::int32_t r = 0; r < n; ++r) {
      threads.emplace_back(
          [&, r] { results[static_cast<std::size_t>(r)] = body(r, *transports[static_cast<std::size_t>(r)]); });
    }
    threads.clear();
    return results;
  }

  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_).value();
};

Status all_reduce(Transport& transport, const CollectiveCall& call) {
  const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", transport.num_ranks()}}).value()));
  Bits x(static_cast<std::size_t>(bytes_of(call.dtype, call.shape).count() * call.parts)), y(x.size());
  const auto prepared = TRY(communicator->prepare(call, x.data(), y.data(), nullptr));
  WorkCounters counters;
  return communicator->run(*prepared, counters);
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

TEST_F(Tcp, messages_arrive_whole_and_in_order) {
  constexpr std::int32_t kRanks = 4;
  const auto byte_of = [](int round, std::int32_t source, std::int32_t target, int k, std::size_t i) {
    return static_cast<std::byte>(round * 31 + source * 7 + target * 3 + k + static_cast<int>(i * 13 + i / 251));
  };
  const auto body = [&](std::int32_t me, Transport& transport) -> Status {
    std::mt19937 random(5);  // the same on every rank
    std::int64_t written = 0;
    for (int round = 0; round < 100; ++round) {
      std::vector<Bits> sent, got;
      std::vector<std::array<int, 3>> ends;  // source, target, k
      for (std::int32_t a = 0; a < kRanks; ++a) {
        for (std::int32_t b = 0; b < kRanks; ++b) {
          const auto count = a == b ? 0 : static_cast<int>(random() % 3);
          for (int k = 0; k < count; ++k) {
            const std::size_t size = random() % 4 == 0 ? random() % 900'000 : random() % 300;
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
    EXPECT_EQ(transport.bytes_written(), Bytes(written)) << "payload, and nothing twice";
    return {};
  };
  for (const Status& status : on_ranks(kRanks, Seconds(20.0), body)) {
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

// Sums of rows, of an odd number of f32 each, from pieces that TCP cuts where it likes.
TEST_F(Tcp, rows_are_combined_in_the_order_of_the_list) {
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

TEST_F(Tcp, a_mismatch_names_both_ranks_and_both_collectives) {
  const auto shapes = on_ranks(
      2, Seconds(10.0), [](std::int32_t r, Transport& t) { return all_reduce(t, sum_over(2, {r == 0 ? 100 : 102})); });
  for (const Status& status : shapes)
    expect_names(status, ErrorKind::invalid, {"rank 0", "rank 1", "all_reduce #0, step 0 of 20"});
  const auto kinds = on_ranks(2, Seconds(10.0), [](std::int32_t r, Transport& t) {
    CollectiveCall call = sum_over(2, {100});
    if (r == 1) call.kind = CollectiveKind::all_gather;
    return all_reduce(t, call);
  });
  for (const Status& status : kinds) expect_names(status, ErrorKind::invalid, {"all_reduce #0", "all_gather #0"});
}

TEST_F(Tcp, a_rank_that_never_comes_to_a_collective_is_named_by_all) {
  for (const auto algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct}) {
    const auto began = std::chrono::steady_clock::now();
    const auto results = on_ranks(5, Seconds(0.6), [&](std::int32_t r, Transport& t) -> Status {
      CollectiveCall call = sum_over(5, {1000});
      call.algorithm = algorithm;
      if (r != 3) return all_reduce(t, call);
      std::this_thread::sleep_for(std::chrono::milliseconds(1800));
      return {};
    });
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8));
    for (const std::size_t r : {0, 1, 2, 4}) expect_names(results[r], ErrorKind::io, {"for rank 3", "all_reduce #0"});
  }
}

TEST_F(Tcp, who_is_slow_but_moves_is_waited_for) {
  const auto results = on_ranks(3, Seconds(1.0), [](std::int32_t r, Transport& t) -> Status {
    for (int i = 0; i < 4; ++i) {
      if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      TRY(all_reduce(t, sum_over(3, {1000})));
    }
    return {};
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_F(Tcp, after_an_error_it_is_of_no_use) {
  on_ranks(2, Seconds(0.3), [](std::int32_t r, Transport& t) -> Status {
    if (r == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      return {};
    }
    const Status first = all_reduce(t, sum_over(2, {10}));
    EXPECT_FALSE(first.ok());
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(all_reduce(t, sum_over(2, {10})).error().message, first.error().message);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(100));
    return first;
  });
}

TEST_F(Tcp, a_rank_that_has_left_is_named_at_once_by_all) {
  Transports transports = meet(4, Seconds(30.0));
  transports[2].reset();
  const auto began = std::chrono::steady_clock::now();
  std::vector<Status> results(4);
  std::vector<std::jthread> threads;
  for (const std::size_t r : {0, 1, 3}) {
    CollectiveCall call = sum_over(4, {1000});
    call.algorithm = CollectiveAlgorithm::ring;
    threads.emplace_back([&, r, call] { results[r] = all_reduce(*transports[r], call); });
  }
  threads.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const std::size_t r : {0, 1, 3}) expect_names(results[r], ErrorKind::io, {"lost rank 2", "it has left"});
}

// This process's connections over TCP, both ends of each.
std::set<int> connections() {
  std::set<int> found;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && peer.ss_family == AF_INET)
      found.insert(fd);
  }
  return found;
}

// Whichever it is. Data cut short ends all ranks with the name of one at its ends; a cut of what they tell each other
// of waiting harms nothing.
TEST_F(Tcp, a_socket_cut_inside_a_collective_ends_it_on_all_ranks_and_names_one) {
  int ended = 0;
  for (std::size_t which = 0; which < 12; ++which) {
    const std::set<int> before = connections();
    Transports transports = meet(3, Seconds(20.0));
    std::vector<int> ours;
    for (const int fd : connections()) {
      if (!before.contains(fd)) ours.push_back(fd);
    }
    ASSERT_FALSE(ours.empty());
    std::vector<Status> results(3);
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < 3; ++r) {
        threads.emplace_back([&, r] {
          for (int i = 0; i < 60 && results[r].ok(); ++i)
            results[r] = all_reduce(*transports[r], sum_over(3, {100'000}));
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      ::shutdown(ours[which % ours.size()], SHUT_RDWR);
    }
    if (std::all_of(results.begin(), results.end(), [](const Status& s) { return s.ok(); })) continue;
    ++ended;
    for (const Status& status : results) expect_names(status, ErrorKind::io, {"lost rank "});
  }
  EXPECT_GT(ended, 0);
}

TEST_F(Tcp, last_words_are_heard) {
  Transports transports = meet(2, Seconds(5.0));
  const Bits x(100, std::byte{7});
  Bits y(100);
  const std::vector<Outgoing> out{to(0, x)};
  const std::vector<Incoming> in{from(1, y)};
  ASSERT_TRUE(transports[1]->exchange({{0, 4, 0, 0}, out, {}}).ok());
  transports[1].reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(transports[0]->exchange({{0, 4, 0, 0}, {}, in}).ok());
  EXPECT_EQ(y, x);
}

TEST_F(Tcp, abort_from_another_thread_ends_all_waits) {
  Transports transports = meet(3, Seconds(30.0));
  std::vector<Status> results(2);
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] { results[r] = all_reduce(*transports[r], sum_over(3, {100})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  transports[0]->abort("a test asked for it");
  threads.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  for (const Status& status : results) expect_names(status, ErrorKind::interrupted, {"a test asked for it"});
  EXPECT_FALSE(all_reduce(*transports[2], sum_over(3, {100})).ok());
}

TEST_F(Tcp, one_rank_alone_needs_nobody) {
  Transports transports = meet(1, Seconds(5.0));
  EXPECT_TRUE(make_communicator(*transports[0], Mesh()).value()->barrier().ok());
}

TEST_F(Tcp, ranks_that_do_not_come_to_the_meeting_are_named) {
  std::vector<std::jthread> threads;
  for (const std::int32_t r : {0, 2}) {
    threads.emplace_back([this, r] {
      RendezvousClient rendezvous = client();
      const auto made = tcp_transport(rendezvous, r, 4, {.mesh = {.connect_time = Seconds(0.4)}});
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().kind, ErrorKind::not_found);
      EXPECT_NE(made.error().message.find("for ranks 1, 3, which did not come"), std::string::npos)
          << made.error().message;
    });
  }
}

// Rank 1 and many strangers call rank 0: the strangers hear nothing, and rank 1 does not wait for them.
TEST_F(Tcp, strangers_garbage_and_the_wrong_secret_break_nothing) {
  Transports transports(2);
  std::vector<Fd> strangers;
  std::jthread zero([&] {
    RendezvousClient rendezvous = client();
    transports[0] = tcp_transport(rendezvous, 0, 2, {.patience = Seconds(10.0)}).value();
  });
  RendezvousClient rendezvous = client();
  const std::string place = rendezvous.wait("tcp/0", Seconds(20.0)).value();
  const NetAddress address = parse_address(place.substr(0, place.find(' '))).value();
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    Fd fd = connect_to(address, deadline_after(Seconds(10.0))).value();
    Bits garbage(static_cast<std::size_t>(random() % 80));
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    if (garbage.size() > 24) std::memcpy(garbage.data(), "SYSTCP\1\n", 8);
    if (i % 3 == 0) {  // all of it as rank 1 would say it, but for the secret
      garbage.resize(36);
      const std::array<std::uint32_t, 3> words{1, 0, static_cast<std::uint32_t>(i % 2)};
      std::memcpy(garbage.data(), "SYSTCP\1\n", 8);
      std::memcpy(garbage.data() + 24, words.data(), 12);
    }
    (void)!::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(fd));
  }
  transports[1] = tcp_transport(rendezvous, 1, 2, {.patience = Seconds(10.0)}).value();
  zero.join();
  std::jthread one([&] { EXPECT_TRUE(all_reduce(*transports[1], sum_over(2, {5000})).ok()); });
  EXPECT_TRUE(all_reduce(*transports[0], sum_over(2, {5000})).ok());
  for (const Fd& fd : strangers) {
    std::byte byte;
    const ssize_t got = ::recv(fd.get(), &byte, 1, 0);
    EXPECT_LE(got, 0) << "a stranger was answered";
  }
  EXPECT_FALSE(connect_to(address, deadline_after(Seconds(0.02))).ok()) << "nobody listens any more";
}

TEST_F(Tcp, collectives_give_what_they_are_defined_to) {
  const auto body = [](std::int32_t me, Transport& transport) -> Status {
    const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", 4}}).value()));
    int ran = 0;
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                            CollectiveKind::all_to_all}) {
      for (const auto algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct}) {
        CollectiveCall call{kind, "data", 4, DType::f32, {8, 12}};
        call.dim = 1;
        call.split_dim = 0;
        call.concat_dim = 1;
        call.algorithm = algorithm;
        std::vector<float> x(96), y(96 * 4);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(me) + static_cast<float>(i);
        Bits workspace(static_cast<std::size_t>(collective_workspace(call).count()) + 64);
        auto prepared = communicator->prepare(call, reinterpret_cast<std::byte*>(x.data()),
                                              reinterpret_cast<std::byte*>(y.data()), workspace.data());
        if (!prepared.ok()) continue;  // this pair is not offered
        ++ran;
        WorkCounters counters;
        TRY(communicator->run(**prepared, counters));
        if (kind == CollectiveKind::all_reduce && y[5] != 4 * 5 + 6.0F)
          return error(ErrorKind::internal, "sum {}", y[5]);
        if (kind == CollectiveKind::all_gather && y[12] != 1.0F)
          return error(ErrorKind::internal, "gathered {}", y[12]);
        if (kind == CollectiveKind::reduce_scatter && y[0] != 4 * 3.0F * static_cast<float>(me) + 6)
          return error(ErrorKind::internal, "part {} of rank {}", y[0], me);
        if (kind == CollectiveKind::all_to_all && y[12] != 1.0F + 24.0F * static_cast<float>(me))
          return error(ErrorKind::internal, "exchanged {} at rank {}", y[12], me);
      }
    }
    EXPECT_GE(ran, 6);
    return {};
  };
  for (const Status& status : on_ranks(4, Seconds(10.0), body)) EXPECT_TRUE(status.ok()) << status.error().message;
}

}  // namespace
}  // namespace systole
