#include "ground/base/telemetry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace systole {
namespace {

class RingFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-ring-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ + "/spans";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void poke(std::streamoff offset, char value) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put(value);
  }

  std::string folder_, path_;
};

Result<RingContent> read_ring(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_ring(std::as_bytes(std::span(bytes)), path);
}

Span span(int n) {
  return {static_cast<std::uint32_t>(n % 5), 7, static_cast<std::uint64_t>(n), Seconds(n * 1.0), Seconds(n + 0.5)};
}

TEST(Ring, keeps_the_newest) {
  Ring ring(4);
  EXPECT_TRUE(ring.read().spans.empty());
  for (int n = 0; n < 10; ++n) ring.record(span(n));
  const RingContent content = ring.read();
  EXPECT_EQ(content.recorded, 10);
  EXPECT_EQ(content.torn, 0);
  EXPECT_EQ(content.spans, (std::vector<Span>{span(6), span(7), span(8), span(9)}));
}

TEST_F(RingFile, survives_a_kill) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<Ring> ring = Ring::create(path_, 100).value();
    for (int n = 0; n < 30; ++n) ring->record(span(n));
    if (::write(ready[1], "y", 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const RingContent content = read_ring(path_).value();
  EXPECT_EQ(content.process, child);
  EXPECT_EQ(content.recorded, 30);
  EXPECT_EQ(content.spans.size(), 30u);
  EXPECT_EQ(content.spans[29], span(29));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RingFile, knows_a_torn_record_at_every_byte) {
  {
    const std::unique_ptr<Ring> ring = Ring::create(path_, 8).value();
    for (int n = 0; n < 3; ++n) ring->record(span(n));
  }
  for (int byte = 0; byte < 48; ++byte) {
    std::ifstream before(path_, std::ios::binary);
    before.seekg(64 + 2 * 48 + byte);
    const char old = static_cast<char>(before.get());
    poke(64 + 2 * 48 + byte, static_cast<char>(old ^ 0x10));
    const RingContent content = read_ring(path_).value();
    EXPECT_EQ(content.torn, 1) << byte;
    EXPECT_EQ(content.spans, (std::vector<Span>{span(0), span(1)})) << byte;
    poke(64 + 2 * 48 + byte, old);
  }
  EXPECT_EQ(read_ring(path_)->spans.size(), 3u);
}

TEST_F(RingFile, is_whole_from_the_moment_that_it_is_there) {
  constexpr int kTimes = 200;
  const auto path = [&](int i) { return path_ + std::to_string(i); };
  std::jthread writer([&] {
    for (int i = 0; i < kTimes; ++i) EXPECT_TRUE(Ring::create(path(i), 1024).ok());
  });
  for (int i = 0; i < kTimes; ++i) {
    struct stat seen {};
    const std::string file = path(i);
    while (::stat(file.c_str(), &seen) != 0) continue;
    EXPECT_EQ(seen.st_size, 64 + 48 * 1024) << i;
  }
  writer.join();
  for (int i = 0; i < kTimes; ++i) std::filesystem::remove(path(i));
}

TEST_F(RingFile, refuses_what_is_no_ring) {
  EXPECT_EQ(read_ring(path_).error().kind, ErrorKind::corrupt);  // an empty file is corrupt
  std::ofstream(path_) << "short";
  EXPECT_EQ(read_ring(path_).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Ring::create(path_, 8).error().kind, ErrorKind::exists);
  std::filesystem::remove(path_);
  Ring::create(path_, 8).value();
  std::filesystem::resize_file(path_, 64 + 48);
  EXPECT_EQ(read_ring(path_).error().kind, ErrorKind::corrupt);
  std::filesystem::resize_file(path_, 64 + 48 * 8);
  poke(0, 'x');
  EXPECT_EQ(read_ring(path_).error().kind, ErrorKind::corrupt);
}

TEST(Ring, can_be_read_while_it_is_written) {
  Ring ring(16);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int n = 0; n < 50'000; ++n) ring.record(span(n));
    done = true;
  });
  while (!done) {
    for (const Span& seen : ring.read().spans) ASSERT_EQ(seen, span(static_cast<int>(seen.tag)));
  }
  writer.join();
  EXPECT_EQ(ring.read().recorded, 50'000);
}

}  // namespace
}  // namespace systole
