#include "predict/plan/feed_storage.h"

#include <gtest/gtest.h>

#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

class FeedStorage : public testing::Test {
 protected:
  StorageSpeed of(VolumeSpec volume, const std::string& path = "/data/tokens") {
    Workload workload;
    workload.volumes = {{"/", {.kind = VolumeSpec::Kind::bucket, .of = "outer"}}, {"/data", std::move(volume)}};
    return storage_of(workload, path, tables_).value();
  }
  static VolumeSpec filestore(const char* tier, std::int64_t gib) {
    return {.kind = VolumeSpec::Kind::filestore, .of = tier, .size = Bytes(gib << 30)};
  }
  CatalogTables tables_ = CatalogTables::read().value();
};

// Numbers of the catalog: 260 MiB/s per TiB below 10 TiB, 650 MiB/s per 2.5 TiB above.
TEST_F(FeedStorage, GrowsWithTheSizeWhereTheTierDoes) {
  EXPECT_DOUBLE_EQ(of(filestore("zonal", 2048)).read->count(), 2 * 260 * 0x1p20);
  EXPECT_DOUBLE_EQ(*of(filestore("zonal", 2048)).reads_per_second, 2 * 9200);
  EXPECT_DOUBLE_EQ(of(filestore("zonal", 10240)).read->count(), 10 * 260 * 0x1p20);
  EXPECT_DOUBLE_EQ(*of(filestore("zonal", 10240)).reads_per_second, 4 * 23000);
  EXPECT_DOUBLE_EQ(of(filestore("basic-ssd", 2560)).read->count(), 1200 * 0x1p20);
  EXPECT_DOUBLE_EQ(of({.kind = VolumeSpec::Kind::local_ssd}).read->count(), 390 * 0x1p20) << "of one disk";
  EXPECT_DOUBLE_EQ(of(filestore("basic-hdd", 1024)).write->count(), 100 * 0x1p20) << "\"100 / 120 MiB/s\": the lower";
  EXPECT_TRUE(of(filestore("zonal", 2048)).shared);
  EXPECT_EQ(of(filestore("zonal", 2048)).name, "filestore zonal of 2.00 TiB");
}

// The size that is enough is enough, and a quarter of a TiB less is not.
TEST_F(FeedStorage, SaysWhichSizeIsEnough) {
  const Workload workload = tiny_workload(kTinyModels[1], 65536);
  for (const std::int64_t gib : {1024, 2048, 9216, 102400}) {
    const OfferedFeed feed = offered_feed(workload, 4, Seconds(15.0), of(filestore("zonal", gib)));  // 17,476 reads/s
    ASSERT_TRUE(feed.enough());
    EXPECT_EQ(*feed.enough(), Bytes(std::int64_t{3072} << 30)) << gib;  // 1.5 x 17,476 of 9,200 per TiB: 2.85 TiB
    EXPECT_GE(*offered_feed(workload, 4, Seconds(15.0), of(filestore("zonal", 3072))).spare(), 1.5);
  }
  const std::string much = offered_feed_text(offered_feed(workload, 4, Seconds(15.0), of(filestore("zonal", 102400))));
  EXPECT_NE(much.find("hint: size: 3072GiB is enough for the feed, and costs $24,832"), std::string::npos) << much;
  const std::string little = offered_feed_text(offered_feed(workload, 4, Seconds(15.0), of(filestore("zonal", 1024))));
  EXPECT_NE(little.find("STARVES"), std::string::npos) << little;
  EXPECT_NE(little.find("hint: size: 3072GiB is enough; or data.folder on a local SSD"), std::string::npos) << little;
}

TEST_F(FeedStorage, WhatNobodyKnowsIsUnknown) {
  for (const VolumeSpec& volume :
       {VolumeSpec{.kind = VolumeSpec::Kind::bucket, .of = "corpus"},
        VolumeSpec{.kind = VolumeSpec::Kind::nfs, .of = "server:/x"},
        VolumeSpec{.kind = VolumeSpec::Kind::claim, .of = "claim"}, filestore("regional", 4096)}) {
    const StorageSpeed speed = of(volume);
    EXPECT_FALSE(speed.read) << speed.name;
    EXPECT_NE(speed.source, "") << speed.name;
    Workload workload = tiny_workload(kTinyModels[1], 1024);
    const OfferedFeed feed = offered_feed(workload, 2, Seconds(0.1), speed);
    EXPECT_FALSE(feed.spare());
    EXPECT_EQ(offered_feed_text(feed).find("STARVES"), std::string::npos);
  }
  EXPECT_EQ(of(filestore("zonal", 2048), "elsewhere").name, "the nodes' own disks");
  EXPECT_EQ(of(filestore("zonal", 2048), "/database").name, "bucket outer") << "not under /data";
}

TEST_F(FeedStorage, EveryNodeReadsAllRowsOfASharedStorage) {
  Workload workload = tiny_workload(kTinyModels[1], 1024);
  const StorageSpeed shared{.name = "x", .shared = true, .read = BytesPerSecond(1e6), .source = "catalog"};
  const OfferedFeed feed = offered_feed(workload, 4, Seconds(0.1), shared);
  EXPECT_DOUBLE_EQ(feed.needed().count(), 4 * 10240 * feed.row_bytes);
  EXPECT_DOUBLE_EQ(*feed.spare(), 1e6 / feed.needed().count());
  StorageSpeed own = shared;
  own.shared = false;
  EXPECT_DOUBLE_EQ(*offered_feed(workload, 4, Seconds(0.1), own).spare(), 4 * *feed.spare());
  StorageSpeed few = shared;
  few.reads_per_second = 100;
  EXPECT_DOUBLE_EQ(*offered_feed(workload, 4, Seconds(0.1), few).spare(), 100 / (4 * 10240.0));
  EXPECT_NE(offered_feed_text(offered_feed(workload, 4, Seconds(0.1), few)).find("STARVES in the first epoch"),
            std::string::npos);
}

}  // namespace
}  // namespace systole
