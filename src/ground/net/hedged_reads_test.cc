#include "ground/net/hedged_reads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace systole {
namespace {

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

// Reads that are quick until one stalls.
struct Reads {
  HedgedReads hedged;
  void learn() {
    std::string into(4, ' ');
    for (int i = 0; i < 40; ++i)
      hedged
          .read(bytes_of(into),
                [](ReadSink& sink) -> Status {
                  sink.put(0, "good");
                  return {};
                })
          .value();
  }
};

// What has been stalled until the sink is closed, or for two seconds.
bool stalls(const ReadSink& sink) {
  for (int i = 0; i < 400 && !sink.is_closed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return sink.is_closed();
}

TEST(HedgedReads, a_stalled_read_is_overtaken) {
  std::string into(4, ' ');
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto was_closed = std::make_shared<std::atomic<bool>>(false);
  {
    Reads reads;
    EXPECT_FALSE(reads.hedged.patience());
    reads.learn();
    EXPECT_LT(reads.hedged.patience()->count(), 0.5);
    const std::int64_t before = reads.hedged.seconds_begun();  // on a busy machine a usual read may be late, too
    const int won = reads.hedged
                        .race(bytes_of(into),
                              [calls, was_closed](ReadSink& sink) -> Status {
                                if ((*calls)++ == 0) {
                                  *was_closed = stalls(sink);
                                  sink.put(0, "late");
                                  return {};
                                }
                                sink.put(0, "good");
                                return {};
                              })
                        .value();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(into, "good");
    EXPECT_EQ(reads.hedged.seconds_begun(), before + 1);
  }
  EXPECT_EQ(*calls, 2);
  EXPECT_TRUE(*was_closed);
  EXPECT_EQ(into, "good") << "the late one writes nothing";
}

TEST(HedgedReads, the_first_may_still_win_and_errors_are_told) {
  Reads reads;
  reads.learn();
  std::string into(4, ' ');
  const auto calls = std::make_shared<std::atomic<int>>(0);
  reads.hedged
      .read(bytes_of(into),
            [calls](ReadSink& sink) -> Status {
              if ((*calls)++ == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(60));
                sink.put(0, "done");
                return {};
              }
              return error(ErrorKind::io, "the second fails");
            })
      .value();
  EXPECT_EQ(into, "done");
  const Status failed = reads.hedged.read(
      bytes_of(into), [](ReadSink&) -> Status { return error(ErrorKind::not_found, "there is none"); });
  EXPECT_EQ(failed.error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
