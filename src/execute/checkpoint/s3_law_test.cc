// Whole or absent in S3: every request of a save is a point at which the process dies, before or after the server has
// done it, and one at which the network or the server fails. Against the twin (s3_twin.h).

#include <gtest/gtest.h>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/s3_twin.h"

namespace systole::checkpoint {
namespace {

using Kind = S3Fault::Kind;

// Large parts: a save is some tens of requests.
std::unique_ptr<S3Twin> empty() {
  auto twin = std::make_unique<S3Twin>();
  twin->part = 16 << 10;
  return twin;
}

Folder folder_on(const S3Twin& twin) { return {twin.open("run"), "checkpoints"}; }

SaveOptions options() {
  SaveOptions options = tiny_options();
  options.threads = 1;  // so that requests have their numbers
  return options;
}

// A bucket with saves of steps 10 and 20.
std::unique_ptr<S3Twin> begun() {
  static const std::map<std::string, std::string> objects = [] {
    const std::unique_ptr<S3Twin> twin = empty();
    for (const std::int64_t step : {10, 20}) save_tiny(folder_on(*twin), step, options()).value();
    std::map<std::string, std::string> all;
    for (const std::string& key : twin->keys()) all[key] = twin->bytes_of(key);
    return all;
  }();
  std::unique_ptr<S3Twin> twin = empty();
  for (const auto& [key, bytes] : objects) twin->put(key, bytes);
  return twin;
}

std::int64_t requests_of_a_save() {
  const auto twin = begun();
  const Folder folder = folder_on(*twin);
  twin->clear_faults();
  save_tiny(folder, 30, options()).value();
  return twin->requests();
}

TEST(WholeOrAbsentInS3, every_request_of_a_save_is_a_crash_point) {
  const std::int64_t requests = requests_of_a_save();
  ASSERT_GT(requests, 10);
  int old_seen = 0, new_seen = 0;
  for (std::int64_t n = 1; n <= requests; ++n) {
    for (const Kind last : {Kind::refused, Kind::answer_lost}) {
      SCOPED_TRACE(fmt::format("dies {} request {} of {}", last == Kind::refused ? "before" : "after", n, requests));
      const auto twin = begun();
      const Folder dying = folder_on(*twin);
      twin->clear_faults();
      twin->inject({last, n});
      twin->inject({Kind::refused, n + 1, true});
      const bool said = save_tiny(dying, 30, options()).ok();
      twin->clear_faults();
      const Folder folder = folder_on(*twin);
      EXPECT_EQ(verify_tiny_saves(folder, said), "");
      (list_steps(folder)->back() == 30 ? new_seen : old_seen) += 1;
      if (n % 3 == 0) {  // the same step again, as after a restart
        const auto again = save_tiny(folder, 30, options());
        ASSERT_TRUE(again.ok()) << to_string(again.error());
        EXPECT_FALSE(again->sweep_error);
        EXPECT_EQ(verify_tiny_saves(folder, true), "");
        EXPECT_EQ(twin->open_uploads(), 0);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(old_seen, 0);
  EXPECT_GT(new_seen, 0);
}

TEST(WholeOrAbsentInS3, every_request_of_a_save_may_fail_once) {
  const std::int64_t requests = requests_of_a_save();
  constexpr Kind kKinds[] = {Kind::refused,   Kind::answer_lost, Kind::truncated, Kind::twice,   Kind::slow_down,
                             Kind::throttled, Kind::failed,      Kind::conflict,  Kind::damaged, Kind::stale_list};
  for (std::int64_t n = 1; n <= requests; ++n) {
    for (const std::size_t turn : {0, 3, 7}) {
      const Kind kind = kKinds[(static_cast<std::size_t>(n) + turn) % std::size(kKinds)];
      SCOPED_TRACE(fmt::format("fault {} at request {} of {}", static_cast<int>(kind), n, requests));
      const auto twin = begun();
      const Folder folder = folder_on(*twin);
      twin->clear_faults();
      twin->inject({kind, n});
      const auto saved = save_tiny(folder, 30, options());
      const bool is_lie = kind == Kind::damaged || kind == Kind::stale_list;
      EXPECT_TRUE(saved.ok() || is_lie) << to_string(saved.error());
      twin->clear_faults();
      EXPECT_EQ(verify_tiny_saves(folder_on(*twin), saved.ok()), "");
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace systole::checkpoint
