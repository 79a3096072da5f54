// Ranks as processes of this machine: their results, and the errors of the others when one is killed, stopped, never
// comes, or shares something that is no segment.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <thread>

#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"

namespace systole {
namespace {

using Body = std::function<Status(std::int32_t rank, Transport& transport)>;

// A number shared by this process and its forks. Waits are bounded.
class SharedCount {
 public:
  SharedCount() {
    void* const page = mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "no memory to share");
    count_ = new (page) Count(0);
  }
  ~SharedCount() { munmap(count_, sizeof(Count)); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  void add() { ++*count_; }
  bool reaches(int wanted) const {
    for (int look = 0; look < 10'000 && *count_ < wanted; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return *count_ >= wanted;
  }

 private:
  using Count = std::atomic<int>;
  static_assert(Count::is_always_lock_free);
  Count* count_ = nullptr;
};

// Ranks as child processes; each sends its result through a pipe. Those still alive at the end are killed by their ids.
class Ranks {
 public:
  Ranks(std::int32_t n, const RingOptions& options, const Body& body, std::int32_t absent = -1) {
    segment_ = Segment::create(n, "token").value();
    const std::string place = segment_->place();
    for (std::int32_t r = 0; r < n; ++r) {
      int ends[2];
      if (r == absent || pipe(ends) != 0) continue;
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        const std::string text = ended(be(r, place, options, body));
        const auto written = write(ends[1], text.data(), text.size());
        _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
      }
      close(ends[1]);
      children_.push_back({r, child, Fd(ends[0])});
    }
  }
  ~Ranks() {
    for (Child& child : children_) {
      if (child.pid <= 0) continue;
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }
  void signal(std::int32_t rank, int number) {
    for (const Child& child : children_) {
      if (child.rank == rank) kill(child.pid, number);
    }
  }
  // The result of rank `r`: "ok", "<kind>: <message>", or nothing if it was killed. Waits for it.
  std::string result(std::int32_t r) {
    for (Child& child : children_) {
      if (child.rank != r) continue;
      std::string text;
      char buffer[4096];
      for (ssize_t got; (got = read(child.pipe.get(), buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
      waitpid(child.pid, nullptr, 0);
      child.pid = 0;
      return text;
    }
    return {};
  }

 private:
  struct Child {
    std::int32_t rank;
    pid_t pid;
    Fd pipe;
  };
  static Status be(std::int32_t r, const std::string& place, const RingOptions& options, const Body& body) {
    const std::shared_ptr<Segment> segment = TRY(Segment::open(place, "token"));
    const std::unique_ptr<Transport> transport = TRY(ring_transport(segment, r, options));
    return body(r, *transport);
  }
  static std::string ended(const Status& status) {
    return status.ok() ? "ok" : fmt::format("{}: {}", name_of(status.error().kind), status.error().message);
  }
  std::shared_ptr<Segment> segment_;  // until all have opened it
  std::vector<Child> children_;
};

// Sums and gathers numbers that identify the sender, `times` times; `busy` counts the ranks that have done it once.
Status sum_and_gather(std::int32_t rank, Transport& transport, std::int64_t elements, int times,
                      SharedCount* busy = nullptr) {
  const std::int64_t n = transport.num_ranks();
  const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", n}}).value()));
  std::vector<float> x(static_cast<std::size_t>(elements)), y(x.size()), all(x.size() * static_cast<std::size_t>(n));
  const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto sum = TRY(communicator->prepare({CollectiveKind::all_reduce, "data", n, DType::f32, {elements}}, bytes(x),
                                             bytes(y), nullptr));
  const auto gather = TRY(communicator->prepare({CollectiveKind::all_gather, "data", n, DType::f32, {elements}},
                                                bytes(y), bytes(all), nullptr));
  for (int time = 0; time < times; ++time) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(rank + 1 + static_cast<int>(i % 97) + time % 5);
    WorkCounters counters;
    TRY(communicator->run(*sum, counters));
    TRY(communicator->run(*gather, counters));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto place = static_cast<int>(i % x.size());
      const auto want = static_cast<float>(n * (n + 1) / 2 + n * (place % 97 + time % 5));
      if (all[i] != want) return error(ErrorKind::internal, "time {} element {}: {} and not {}", time, i, all[i], want);
    }
    if (time == 0 && busy != nullptr) busy->add();
  }
  return communicator->barrier();
}

TEST(Shm, processes_compute_the_same) {
  for (const std::int32_t n : {2, 4, 8}) {
    for (const auto& [elements, times] : {std::pair{3, 300}, {5000, 100}, {1000003, 2}}) {
      Ranks ranks(n, {Seconds(20)},
                  [&](std::int32_t r, Transport& t) { return sum_and_gather(r, t, elements, times); });
      for (std::int32_t r = 0; r < n; ++r) EXPECT_EQ(ranks.result(r), "ok") << n << " ranks, " << elements;
    }
  }
}

// Gathers that are started, progressed beside other work, and waited for later.
Status gather_beside(std::int32_t rank, Transport& transport, int times, SharedCount& busy) {
  const std::int64_t n = transport.num_ranks();
  const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", n}}).value()));
  std::vector<std::byte> x(2 << 20, static_cast<std::byte>(rank)), all(x.size() * static_cast<std::size_t>(n));
  const auto gather = TRY(
      communicator->prepare({CollectiveKind::all_gather, "data", n, DType::u8, {static_cast<std::int64_t>(x.size())}},
                            x.data(), all.data(), nullptr));
  for (int time = 0; time < times; ++time) {
    WorkCounters counters;
    TRY(communicator->start(*gather));
    for (int work = 0; work < 20; ++work) {
      TRY(communicator->progress());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    TRY(communicator->finish(gather.get(), counters));
    if (time == 0) busy.add();
  }
  return {};
}

TEST(Shm, a_rank_killed_beside_other_work_is_named_by_all_others) {
  for (const int delay : {0, 3, 11}) {
    SharedCount busy;
    Ranks ranks(3, {Seconds(20)}, [&](std::int32_t r, Transport& t) { return gather_beside(r, t, 1 << 20, busy); });
    ASSERT_TRUE(busy.reaches(3));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    const auto killed = std::chrono::steady_clock::now();
    ranks.signal(1, SIGKILL);
    for (const std::int32_t r : {0, 2}) {
      const std::string result = ranks.result(r);
      EXPECT_NE(result.find("lost rank 1"), std::string::npos) << result;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(5));
  }
}

TEST(Shm, a_killed_rank_is_named_by_all_others) {
  for (const int delay : {5, 40, 90}) {
    SharedCount busy;
    Ranks ranks(4, {Seconds(20)},
                [&](std::int32_t r, Transport& t) { return sum_and_gather(r, t, 300000, 1 << 20, &busy); });
    ASSERT_TRUE(busy.reaches(4));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    const auto killed = std::chrono::steady_clock::now();
    ranks.signal(2, SIGKILL);
    for (const std::int32_t r : {0, 1, 3}) {
      const std::string result = ranks.result(r);
      EXPECT_NE(result.find("lost rank 2"), std::string::npos) << result;
      EXPECT_NE(result.find("has ended"), std::string::npos) << result;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(5));
    EXPECT_EQ(ranks.result(2), "");
  }
}

TEST(Shm, a_stopped_rank_is_named_within_the_patience) {
  // Longer than four processes on two busy cores may be kept from running: a starved rank is named as well as a stopped
  // one, by those that wait for it.
  constexpr std::int64_t kPatience = 4;  // seconds
  SharedCount busy;
  Ranks ranks(4, {Seconds(kPatience)},
              [&](std::int32_t r, Transport& t) { return sum_and_gather(r, t, 100000, 1 << 20, &busy); });
  ASSERT_TRUE(busy.reaches(4));
  const auto stopped = std::chrono::steady_clock::now();
  ranks.signal(1, SIGSTOP);
  for (const std::int32_t r : {0, 2, 3}) {
    const std::string result = ranks.result(r);
    EXPECT_NE(result.find("for rank 1"), std::string::npos) << result;
    EXPECT_NE(result.find("is stopped"), std::string::npos) << result;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(kPatience + 5));
  ranks.signal(1, SIGCONT);
  EXPECT_NE(ranks.result(1).find("io: "), std::string::npos);  // it learns that the others gave up
}

TEST(Shm, a_stop_shorter_than_the_patience_harms_nothing) {
  Ranks ranks(3, {Seconds(10)}, [](std::int32_t r, Transport& t) { return sum_and_gather(r, t, 20000, 200); });
  ranks.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ranks.signal(1, SIGCONT);
  for (std::int32_t r = 0; r < 3; ++r) EXPECT_EQ(ranks.result(r), "ok");
}

TEST(Shm, a_rank_that_never_comes_is_named) {
  Ranks ranks(
      3, {Seconds(0.5)}, [](std::int32_t r, Transport& t) { return sum_and_gather(r, t, 100, 1); }, 1);
  for (const std::int32_t r : {0, 2}) {
    const std::string result = ranks.result(r);
    EXPECT_NE(result.find("for rank 1"), std::string::npos) << result;
    EXPECT_NE(result.find("it never came"), std::string::npos) << result;
  }
}

// Its process ends without leaving properly, while others still communicate with each other.
TEST(Shm, a_rank_that_went_after_its_last_word_harms_nobody) {
  SharedCount gone;
  Ranks ranks(3, {Seconds(10)}, [&](std::int32_t r, Transport& t) -> Status {
    std::byte word{7}, got[2]{};
    const auto from = [&](std::int32_t rank, std::byte& into) {
      return Incoming{rank, &into, Bytes(1), Bytes(1), Bytes(1)};
    };
    const std::vector<Outgoing> out{{0, &word, Bytes(1), Bytes(1), Bytes(1)}};
    const std::vector<Incoming> in{from(1, got[0]), from(2, got[1])};
    if (r == 2 && !gone.reaches(1)) return error(ErrorKind::internal, "rank 1 does not end");
    TRY(r == 0 ? t.exchange({{}, {}, in}) : t.exchange({{}, out, {}}));
    if (r == 1) _exit(0);
    return r != 0 || got[1] == word ? Status() : error(ErrorKind::internal, "another word");
  });
  EXPECT_EQ(ranks.result(1), "");
  gone.add();
  for (const std::int32_t r : {0, 2}) EXPECT_EQ(ranks.result(r), "ok");
}

// The segment never has a name, so none can be left, whoever is killed.
TEST(Shm, nothing_is_left_behind) {
  const auto names = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      count += entry.path().filename().string().find("systole") != std::string::npos ? 1 : 0;
    return count;
  };
  const std::size_t before = names();
  SharedCount busy;
  Ranks ranks(2, {Seconds(5)},
              [&](std::int32_t r, Transport& t) { return sum_and_gather(r, t, 100000, 1 << 20, &busy); });
  ASSERT_TRUE(busy.reaches(2));
  for (const std::int32_t r : {0, 1}) ranks.signal(r, SIGKILL);
  EXPECT_EQ(names(), before);
}

class SegmentFile : public testing::Test {
 protected:
  // A memory file, sealed or not, with these bytes.
  std::string file(const std::vector<std::byte>& bytes, bool sealed = true) {
    fd_ = Fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(write(fd_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(fcntl(fd_.get(), F_ADD_SEALS, sealed ? F_SEAL_SHRINK : 0), 0);
    return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get());
  }
  static std::vector<std::byte> good() {
    const auto segment = Segment::create(2, "token").value();
    std::vector<std::byte> bytes(static_cast<std::size_t>(segment_bytes(2).count()));
    std::memcpy(bytes.data(), &segment->header(), bytes.size());
    return bytes;
  }
  Fd fd_;
};

TEST_F(SegmentFile, what_is_no_segment_is_refused) {
  EXPECT_TRUE(Segment::open(file(good()), "token").ok());
  EXPECT_EQ(Segment::open(file(good()), "another").error().kind, ErrorKind::invalid);
  EXPECT_EQ(Segment::open(file(good(), false), "token").error().kind, ErrorKind::corrupt);  // could be truncated later
  EXPECT_EQ(Segment::open(file({}), "token").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Segment::open(file(std::vector<std::byte>(100000)), "token").error().kind, ErrorKind::corrupt);
  std::vector<std::byte> short_one = good();
  short_one.resize(short_one.size() - 1);
  EXPECT_EQ(Segment::open(file(short_one), "token").error().kind, ErrorKind::corrupt);
  for (std::size_t at = 0; at < 32; ++at) {  // each byte of magic, version and sizes
    std::vector<std::byte> damaged = good();
    damaged[at] ^= std::byte{0x41};
    EXPECT_EQ(Segment::open(file(damaged), "token").error().kind, ErrorKind::corrupt) << at;
  }
  EXPECT_EQ(Segment::open("/proc/self/fd/9999", "token").error().kind, ErrorKind::not_found);
  EXPECT_FALSE(Segment::open("/dev/null", "token").ok());
}

TEST_F(SegmentFile, ranks_are_from_one_to_a_bound) {
  EXPECT_FALSE(Segment::create(0, "t").ok());
  EXPECT_FALSE(Segment::create(1 << 20, "t").ok());
  EXPECT_TRUE(Segment::create(1, "t").ok());
  EXPECT_LT(segment_bytes(64), 160 * kMiB);
}

}  // namespace
}  // namespace systole
