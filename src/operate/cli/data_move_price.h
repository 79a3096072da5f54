#pragma once
// What moving objects costs before it starts, as far as the catalog has prices: requests of buckets, and bytes that leave
// one. Unknown is not 0.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/catalog/storage_tier.h"
#include "ground/store/store_access.h"
#include "ground/store/transfer.h"

namespace systole::cli {

// Whose prices hold for a bucket, as the catalog names it: "Cloud Storage", "Amazon S3"; empty: a server of S3 that is
// not AWS's. REQUIRES: the place is a bucket.
std::string vendor_of(const Place& place, const StoreAccess& access);

struct MoveRequests {
  std::string vendor;  // as vendor_of
  std::int64_t reads = 0, writes = 0;
  Bytes leave{};
};

struct MovePrice {
  std::optional<Dollars> requests;  // of all vendors; none: at least one is unknown
  std::string requests_of;          // "Cloud Storage 2026-07-30, Amazon S3 in us-east-1 2026-07-30"
  // Of each bucket that bytes leave.
  struct Leaving {
    std::string vendor;
    Bytes bytes{};
    std::optional<Dollars> to_internet;
    std::string terms;  // "$0.12 a GiB, 2026-09-20"
  };
  std::vector<Leaving> leaving;
  // Of all that leaves; none: at least one is unknown.
  std::optional<Dollars> to_internet() const;
};
MovePrice price_of_requests(std::span<const MoveRequests> asked, std::span<const StorageTier> tiers);

// "about 3 reads and 2 writes of buckets: under $0.01 (...)" and a line for each bucket that bytes leave; or "".
std::string price_text(const MovePrice& price, std::int64_t reads, std::int64_t writes);

}  // namespace systole::cli
