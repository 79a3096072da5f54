// Whole or absent in Cloud Storage: every request of a save is a point at which the process dies, before or after the
// server has done it, and a point at which the network or the server fails. Against the twin (gcs_twin.h).

#include <gtest/gtest.h>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/gcs_twin.h"

namespace systole::checkpoint {
namespace {

using Kind = GcsFault::Kind;

Folder folder_on(const GcsTwin& twin, bool dies = false) {
  return {open_store({"gs", "bucket/run"}, twin.access({}, dies)).value(), "checkpoints"};
}

SaveOptions options() {
  SaveOptions options = tiny_options();
  options.threads = 1;  // so that requests have their numbers
  return options;
}

// The bucket after saves of steps 10 and 20.
const std::map<std::string, std::string>& history() {
  static const std::map<std::string, std::string> objects = [] {
    GcsTwin twin;
    for (const std::int64_t step : {10, 20}) save_tiny(folder_on(twin), step, options()).value();
    return twin.objects();
  }();
  return objects;
}
void begin(GcsTwin& twin) {
  for (const auto& [name, bytes] : history()) twin.store(name, bytes);
}

std::int64_t requests_of_a_save() {
  GcsTwin twin;
  begin(twin);
  save_tiny(folder_on(twin), 30, options()).value();
  return twin.count();
}

TEST(WholeOrAbsentInGcs, every_request_of_a_save_is_a_crash_point) {
  const std::int64_t requests = requests_of_a_save();
  ASSERT_GT(requests, 10);
  int old_seen = 0, new_seen = 0;
  for (std::int64_t n = 1; n <= requests; ++n) {
    for (const bool done : {false, true}) {
      SCOPED_TRACE(fmt::format("dies {} request {} of {}", done ? "after" : "before", n, requests));
      GcsTwin twin;
      begin(twin);
      if (done) twin.inject({Kind::reply_lost, n});
      twin.inject({Kind::refused, n + (done ? 1 : 0), true});
      const bool said = save_tiny(folder_on(twin, true), 30, options()).ok();
      twin.clear_faults();
      const Folder folder = folder_on(twin);
      EXPECT_EQ(verify_tiny_saves(folder, said), "");
      (list_steps(folder)->back() == 30 ? new_seen : old_seen) += 1;
      if ((n + (done ? 1 : 0)) % 3 == 0) {  // the same step again, as after a restart
        const auto again = save_tiny(folder, 30, options());
        ASSERT_TRUE(again.ok()) << to_string(again.error());
        EXPECT_FALSE(again->sweep_error);
        EXPECT_EQ(verify_tiny_saves(folder, true), "");
        EXPECT_EQ(folder.store->abort_uploads("").value(), Bytes(0));
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(old_seen, 0);
  EXPECT_GT(new_seen, 0);
}

TEST(WholeOrAbsentInGcs, every_request_of_a_save_may_fail_once) {
  const std::int64_t requests = requests_of_a_save();
  for (std::int64_t n = 1; n <= requests; ++n) {
    for (const int turn : {0, 4, 8}) {
      const auto kind = static_cast<Kind>((n + turn) % kGcsFaults);
      SCOPED_TRACE(fmt::format("fault {} at request {} of {}", static_cast<int>(kind), n, requests));
      GcsTwin twin;
      begin(twin);
      twin.inject({kind, n});
      const auto saved = save_tiny(folder_on(twin), 30, options());
      const bool is_lie = kind == Kind::flipped || kind == Kind::stale_list || kind == Kind::duplicated;
      EXPECT_TRUE(saved.ok() || is_lie) << to_string(saved.error());
      twin.clear_faults();
      EXPECT_EQ(verify_tiny_saves(folder_on(twin), saved.ok()), "");
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace systole::checkpoint
