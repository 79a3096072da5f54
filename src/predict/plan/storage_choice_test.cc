#include "predict/plan/storage_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

class StorageChoice : public testing::Test {
 protected:
  std::vector<StorageOption> of(VolumeSpec open, std::int64_t gib, std::optional<Bytes> local = {},
                                std::int64_t nodes = 1) {
    return storage_options(open, {Bytes(gib << 30), nodes, local}, tables_.storage().value());
  }
  // So many rows a second, of a page each, to each of so many nodes.
  static OfferedFeed feed(double rows_per_second, std::int64_t nodes = 1) {
    OfferedFeed feed{.rows = 1000, .nodes = nodes, .row_bytes = 4000};
    feed.step = Seconds(1000 / rows_per_second);
    return feed;
  }
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(StorageChoice, EveryOptionHoldsTheRowsAndHasASpeedAndAPrice) {
  for (const std::int64_t gib : {1, 1024, 5000, 10000, 50000, 70000}) {
    const std::vector<StorageOption> options = of({.kind = Kind::cheapest}, gib, Bytes(std::int64_t{6000} << 30));
    ASSERT_FALSE(options.empty()) << gib;
    DollarsPerHour before;
    for (const StorageOption& option : options) {
      EXPECT_GE(option.volume.size->count(), gib << 30) << option.speed.name;
      EXPECT_TRUE(option.speed.read && option.speed.cost) << option.speed.name;
      EXPECT_GT(option.cost, DollarsPerHour()) << option.speed.name;
      EXPECT_GE(option.cost, before) << "the cheapest first: " << option.speed.name;
      EXPECT_FALSE(option.volume.open()) << option.speed.name;
      EXPECT_NE(option.volume.of, "regional") << "nobody knows its speed";
      before = option.cost;
    }
  }
  EXPECT_TRUE(of({.kind = Kind::cheapest}, 200000).empty()) << "nothing is so large";
}

// Sizes exist in the vendor's steps, and both of Filestore's ranges are looked at.
TEST_F(StorageChoice, SizesAreThoseThatCanBeHad) {
  std::set<std::int64_t> sizes;
  for (const StorageOption& option : of({.kind = Kind::filestore, .of = "zonal"}, 1500))
    sizes.insert(option.volume.size->count() >> 30);
  EXPECT_EQ(*sizes.begin(), 1536);
  EXPECT_EQ(*sizes.rbegin(), 102400);
  EXPECT_TRUE(sizes.contains(9984) && sizes.contains(10240) && sizes.contains(12800));
  EXPECT_FALSE(sizes.contains(10496)) << "above 10 TiB it goes by 2.5 TiB";
  const std::vector<StorageOption> local = of({.kind = Kind::cheapest}, 400, Bytes(std::int64_t{6000} << 30), 4);
  const auto disks = std::ranges::find(local, Kind::local_ssd, [](const StorageOption& o) { return o.volume.kind; });
  ASSERT_NE(disks, local.end());
  EXPECT_EQ(disks->volume.size->count() >> 30, 750);
  EXPECT_DOUBLE_EQ(disks->cost.count(), 4 * 750 * 0.08 / 730) << "of every node";
  EXPECT_EQ(of({.kind = Kind::filestore, .of = "auto"}, 100, Bytes(std::int64_t{6000} << 30))[0].volume.kind,
            Kind::filestore);
}

// The one chosen gives half to spare, and every cheaper one less.
TEST_F(StorageChoice, TheCheapestThatKeepsUpIsTaken) {
  const std::vector<StorageOption> options = of({.kind = Kind::cheapest}, 100);
  std::set<std::string> chosen;
  for (const double rows : {10.0, 1e3, 5e3, 2e4, 1e5, 1e6}) {
    const Result<StoragePick> pick = cheapest_storage(options, feed(rows, 4), Bytes(std::int64_t{100} << 30));
    ASSERT_TRUE(pick.ok()) << rows << pick.error().message;
    EXPECT_GE(*pick->feed.spare(), 1.5) << rows;
    chosen.insert(pick->option.volume.of);
    for (const StorageOption& option : options) {
      if (option.cost >= pick->option.cost) break;
      OfferedFeed other = feed(rows, 4);
      other.storage = option.speed;
      EXPECT_LT(*other.spare(), 1.5) << rows << option.speed.name;
    }
  }
  EXPECT_EQ(chosen, (std::set<std::string>{"basic-hdd", "basic-ssd", "new", "zonal"}))
      << "each is the best of some need";
}

TEST_F(StorageChoice, SaysThatNothingKeepsUp) {
  const Result<StoragePick> pick =
      cheapest_storage(of({.kind = Kind::filestore, .of = "basic-hdd"}, 100), feed(1e6), Bytes(100 << 20));
  ASSERT_FALSE(pick.ok());
  EXPECT_EQ(pick.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(pick.error().message.find("most gives filestore basic-hdd of 1.00 TiB"), std::string::npos)
      << pick.error().message;
}

}  // namespace
}  // namespace systole
