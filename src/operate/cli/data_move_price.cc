#include "operate/cli/data_move_price.h"

#include "ground/base/counted.h"

namespace systole::cli {
namespace {

constexpr const char *kGoogle = "Cloud Storage", *kAmazon = "Amazon S3";

struct Found {
  Dollars price;
  const StorageTier* tier = nullptr;
};

// If all regions of the catalog have the same.
std::optional<Found> price_of(std::span<const StorageTier> tiers, const std::string& vendor,
                              std::optional<Dollars> StorageTier::*price) {
  std::optional<Found> found;
  for (const StorageTier& tier : tiers) {
    if (tier.storage != vendor || !(tier.*price)) continue;
    if (found && found->price != *(tier.*price)) return std::nullopt;
    if (!found) found = Found{*(tier.*price), &tier};
  }
  return found;
}

// The catalog has S3 of one region.
std::string named(const StorageTier& tier) {
  return tier.storage == kAmazon ? fmt::format("{} in {}", tier.storage, tier.region) : tier.storage;
}

// A known price is not shown as nothing.
std::string to_people(Dollars price) { return price < Dollars(0.01) ? "under $0.01" : to_string(price); }

MovePrice::Leaving price_of_leaving(const MoveRequests& asked, std::span<const StorageTier> tiers) {
  MovePrice::Leaving leaving{asked.vendor, asked.leave, {}, {}};
  const std::optional<Found> found = price_of(tiers, asked.vendor, &StorageTier::gib_to_internet);
  if (!found) return leaving;
  leaving.to_internet = found->price * (static_cast<double>(asked.leave.count()) / 0x1p30);
  leaving.terms =
      fmt::format("${:.4g} a GiB{}, {}", found->price.count(),
                  found->tier->region.empty() ? "" : " from " + found->tier->region, found->tier->dated.date);
  return leaving;
}

}  // namespace

std::string vendor_of(const Place& place, const StoreAccess& access) {
  if (place.scheme == "gs") return kGoogle;
  const Result<S3Access> s3 = access.s3 ? access.s3() : Result<S3Access>(S3Access{});
  if (!s3.ok()) return "";
  std::string_view host = s3->endpoint;
  host = host.substr(0, host.find('/', host.find("://") == host.npos ? 0 : host.find("://") + 3));
  return host.empty() || host.ends_with(".amazonaws.com") ? kAmazon : "";
}

std::optional<Dollars> MovePrice::to_internet() const {
  Dollars sum;
  for (const Leaving& one : leaving) {
    if (!one.to_internet) return std::nullopt;
    sum += *one.to_internet;
  }
  return sum;
}

MovePrice price_of_requests(std::span<const MoveRequests> asked, std::span<const StorageTier> tiers) {
  MovePrice price{.requests = Dollars(), .requests_of = {}, .leaving = {}};
  for (const MoveRequests& one : asked) {
    if (one.leave > Bytes()) price.leaving.push_back(price_of_leaving(one, tiers));
    if (one.reads + one.writes == 0) continue;
    const auto writes = price_of(tiers, one.vendor, &StorageTier::thousand_writes),
               reads = price_of(tiers, one.vendor, &StorageTier::thousand_reads);
    if (!writes || !reads) {
      price.requests.reset();
      continue;
    }
    price.requests_of +=
        fmt::format("{}{} {}", price.requests_of.empty() ? "" : ", ", named(*writes->tier), writes->tier->dated.date);
    if (price.requests)
      *price.requests += writes->price * (static_cast<double>(one.writes) / 1000) +
                         reads->price * (static_cast<double>(one.reads) / 1000);
  }
  return price;
}

std::string price_text(const MovePrice& price, std::int64_t reads, std::int64_t writes) {
  std::string text;
  if (reads + writes > 0) {
    text += fmt::format(
        "\nabout {} and {} of buckets: {}", counted(reads, "read"), counted(writes, "write"),
        price.requests ? fmt::format("{} ({})", to_people(*price.requests), price.requests_of) : "price unknown");
  }
  for (const MovePrice::Leaving& one : price.leaving) {
    const std::string what = one.to_internet
                                 ? fmt::format("{} to the internet ({})", to_people(*one.to_internet), one.terms)
                                 : "price unknown";
    text += fmt::format("\n{} leave {}: {}; usually none within its region", to_string(one.bytes),
                        one.vendor.empty() ? "a bucket" : one.vendor, what);
  }
  return text;
}

}  // namespace systole::cli
