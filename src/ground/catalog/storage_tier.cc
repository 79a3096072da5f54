#include "ground/catalog/storage_tier.h"

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"storage", "interface", "usd_per_gib_month", "source", "date"};
constexpr std::string_view kOptional[] = {"tier",
                                          "scope",
                                          "min_gib",
                                          "max_gib",
                                          "step_gib",
                                          "read",
                                          "write",
                                          "read_mibps_per_tib",
                                          "write_mibps_per_tib",
                                          "read_iops",
                                          "write_iops",
                                          "clients",
                                          "region",
                                          "other_price",
                                          "limits",
                                          "access",
                                          "confidence",
                                          "note",
                                          "usd_per_1000_writes",
                                          "usd_per_1000_reads",
                                          "usd_per_gib_to_internet"};

std::optional<Bytes> gib(std::optional<double> count) {
  if (!count) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(*count * 0x1p30));
}

std::optional<BytesPerSecond> mib_rate(std::optional<double> count) {
  if (!count) return std::nullopt;
  return BytesPerSecond(*count * 0x1p20);
}

}  // namespace

const TableColumns kStorageColumns{"storage", kRequired, kOptional};

StorageTier read_storage_tier(TableRow& row) {
  StorageTier tier;
  tier.storage = row.name("storage");
  tier.tier = row.string("tier");
  tier.interface = row.string("interface");
  tier.scope = row.string("scope");
  tier.least = gib(row.number("min_gib"));
  tier.most = gib(row.number("max_gib"));
  tier.read_per_tib = mib_rate(row.number("read_mibps_per_tib"));
  tier.write_per_tib = mib_rate(row.number("write_mibps_per_tib"));
  if (const std::optional<double> price = row.number("usd_per_gib_month")) tier.price = DollarsPerGibMonth(*price);
  if (const std::optional<double> price = row.number("usd_per_1000_writes")) tier.thousand_writes = Dollars(*price);
  if (const std::optional<double> price = row.number("usd_per_1000_reads")) tier.thousand_reads = Dollars(*price);
  if (const std::optional<double> price = row.number("usd_per_gib_to_internet")) tier.gib_to_internet = Dollars(*price);
  tier.region = row.string("region");
  tier.step = row.string("step_gib");
  tier.read = row.string("read");
  tier.write = row.string("write");
  tier.read_iops = row.string("read_iops");
  tier.write_iops = row.string("write_iops");
  tier.clients = row.string("clients");
  tier.other_price = row.string("other_price");
  tier.limits = row.string("limits");
  tier.access = row.string("access");
  tier.dated = row.dated();
  tier.note = row.string("note");
  return tier;
}

}  // namespace systole
