#include "predict/plan/feed_storage.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "describe/spec/mounted.h"
#include "ground/base/counted.h"
#include "predict/plan/mean_step.h"

namespace systole {
namespace {

constexpr double kBlock = 4096;  // of a read of shards (execute/data/token_shard.h)
constexpr double kGibInTib = 1024;

// "1,200" at the begin of a text, which loses it. Nothing: no number is there.
std::optional<double> take_number(std::string_view& text) {
  std::string digits;
  while (!text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == ',' || text[0] == '.')) {
    if (text[0] != ',') digits += text[0];
    text.remove_prefix(1);
  }
  double number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failed == std::errc() && !digits.empty() ? std::optional(number) : std::nullopt;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The vendor's words for a limit, "1,200 MiB/s", "9,200 per TiB", "650 MiB/s per 2.5 TiB", "100 / 120 MiB/s", "0.28 MiB/s per GiB, max
// 1,200", for a size in GiB. Nothing: it says something else.
std::optional<double> limit_of(std::string_view words, std::string_view unit, std::optional<double> gib) {
  take(words, "about ");
  std::optional<double> number = take_number(words);
  if (unit.empty() && number && take(words, " disks ")) {  // "16 disks 1.6 M": of each
    const std::optional<double> all = take_number(words);
    return all ? std::optional(*all * (take(words, " M") ? 1e6 : 1) / *number) : std::nullopt;
  }
  if (number && take(words, " / ")) take_number(words);  // "100 / 120 MiB/s", of small and large: the lower
  if (!number || !take(words, unit)) return std::nullopt;
  if (!take(words, " per ")) return words.empty() || words[0] == ',' || words[0] == ' ' ? number : std::nullopt;
  if (words.starts_with("disk")) return number;  // of one, which is what there is at least
  const double share = take_number(words).value_or(1);
  take(words, " ");
  const double piece = take(words, "TiB") ? share * kGibInTib : take(words, "GiB") ? share : 0;
  if (piece == 0 || !gib) return std::nullopt;
  *number *= *gib / piece;
  if (!take(words, ", max ")) return number;
  const std::optional<double> most = take_number(words);
  return most ? std::min(*number, *most) : number;
}

constexpr Bytes kTib = 1024 * kGiB, kStep = 256 * kGiB;  // sizes of a Filestore zonal

std::string size_text(Bytes size) { return fmt::format("{}GiB", size.count() / kGiB.count()); }

const StorageTier* tier_of(const VolumeSpec& volume, std::span<const StorageTier> tiers) {
  const auto named = [&](std::string_view storage, std::string_view tier) {
    const auto found = std::ranges::find_if(
        tiers, [&](const StorageTier& row) { return row.storage == storage && row.tier.starts_with(tier); });
    return found == tiers.end() ? nullptr : &*found;
  };
  switch (volume.kind) {
    case VolumeSpec::Kind::filestore:
      if (volume.of == "zonal")
        return named("Filestore", volume.size && *volume.size < 10240 * kGiB ? "Zonal, lower" : "Zonal, higher");
      return named("Filestore", volume.of == "regional"    ? "Regional"
                                : volume.of == "basic-hdd" ? "Basic HDD"
                                                           : "Basic SSD");
    case VolumeSpec::Kind::parallelstore: return named("Parallelstore", "");
    case VolumeSpec::Kind::local_ssd: return named("Local SSD", "");
    default: return nullptr;
  }
}

// Why the catalog knows no speed of it.
const char* unknown_of(VolumeSpec::Kind kind) {
  switch (kind) {
    case VolumeSpec::Kind::claim: return "what is behind the claim is unknown";
    case VolumeSpec::Kind::nfs: return "the speed of one's own server is unknown";
    case VolumeSpec::Kind::bucket: return "small reads through a mounted bucket are slow, and how slow is unknown";
    case VolumeSpec::Kind::image: return "it is on the nodes' own disks, whose speed is unknown";
    case VolumeSpec::Kind::lustre: return "the instance's throughput per TiB is unknown";
    case VolumeSpec::Kind::hyperdisk: return "its provisioned throughput is unknown";
    case VolumeSpec::Kind::cheapest: return "it follows from the feed";
    default: return "the catalog has no number for it";
  }
}

bool is_shared(VolumeSpec::Kind kind) {
  return kind != VolumeSpec::Kind::local_ssd && kind != VolumeSpec::Kind::image && kind != VolumeSpec::Kind::hyperdisk;
}

}  // namespace

const StorageTier* tier_of_volume(const VolumeSpec& volume, std::span<const StorageTier> tiers) {
  return tier_of(volume, tiers);
}

std::optional<double> number_in_front(std::string_view text) { return take_number(text); }

const std::string* mount_of(const Workload& workload, const std::string& path) {
  const MountedVolume* found = volume_of(workload.volumes, path);
  return found == nullptr ? nullptr : &found->first;
}

Result<StorageSpeed> storage_of(const Workload& workload, const std::string& path, CatalogTables& tables) {
  const std::string* mount = mount_of(workload, path);
  if (mount == nullptr) return StorageSpeed{.name = "the nodes' own disks", .source = "their speed is unknown"};
  return speed_of_volume(workload.volumes.at(*mount), TRY(tables.storage()));
}

StorageSpeed speed_of_volume(const VolumeSpec& volume, std::span<const StorageTier> tiers) {
  StorageSpeed speed{.name = name_of(volume.kind), .shared = is_shared(volume.kind)};
  if (!volume.of.empty()) speed.name += " " + volume.of;
  if (volume.size) speed.name += " of " + to_string(*volume.size);
  speed.source = unknown_of(volume.kind);
  speed.made = volume.made();
  const StorageTier* tier = tier_of(volume, tiers);
  if (tier == nullptr) return speed;
  const std::optional<double> gib =
      volume.size ? std::optional(static_cast<double>(volume.size->count()) / 0x1p30) : std::nullopt;
  if (speed.made && tier->price && gib) speed.cost = DollarsPerHour(tier->price->count() * *gib / kMonthHours);
  if (tier->read_per_tib && gib) {
    speed.read = *tier->read_per_tib * (*gib / kGibInTib);
  } else if (const auto mib = limit_of(tier->read, " MiB/s", gib)) {
    speed.read = BytesPerSecond(*mib * 0x1p20);
  }
  if (tier->write_per_tib && gib) {
    speed.write = *tier->write_per_tib * (*gib / kGibInTib);
  } else if (const auto mib = limit_of(tier->write, " MiB/s", gib)) {
    speed.write = BytesPerSecond(*mib * 0x1p20);
  }
  speed.reads_per_second = limit_of(tier->read_iops, "", gib);
  if (speed.read)
    speed.source = tier->dated.date.empty() ? "catalog, without a date" : "catalog of " + tier->dated.date;
  if (volume.kind == VolumeSpec::Kind::filestore && volume.size && tier->read_per_tib && tier->least) {
    speed.sized = true;
    speed.size = *volume.size;
    speed.least = std::min(*tier->least, kTib);  // the lower range begins there
    speed.step = kStep;
    speed.price = tier->price;
  }
  return speed;
}

std::optional<Bytes> OfferedFeed::enough() const {
  const std::optional<double> had = spare();
  if (!had || !storage.sized) return std::nullopt;
  const double wanted = static_cast<double>(storage.size.count()) * kToSpare / *had;
  const auto grain = static_cast<double>((wanted < 10 * 0x1p40 ? storage.step : storage.step * 10).count());
  return std::max(storage.least, Bytes(static_cast<std::int64_t>(std::ceil(wanted / grain) * grain)));
}

BytesPerSecond OfferedFeed::needed() const {
  return BytesPerSecond(rows_per_second() * row_bytes * static_cast<double>(storage.shared ? nodes : 1));
}

double OfferedFeed::reads() const {
  return rows_per_second() * (std::floor(row_bytes / kBlock) + 1) * static_cast<double>(storage.shared ? nodes : 1);
}

std::optional<double> OfferedFeed::spare() const {
  if (!storage.read) return std::nullopt;
  const double bytes = storage.read->count() / needed().count();
  return storage.reads_per_second ? std::min(bytes, *storage.reads_per_second / reads()) : bytes;
}

std::int64_t shard_token_bytes(const ModelSpec& model) { return model.vocabulary() > 65536 ? 4 : 2; }

OfferedFeed offered_feed(const Workload& workload, std::int64_t nodes, Seconds step, StorageSpeed storage,
                         std::span<const PlannedShape> shapes) {
  OfferedFeed feed{.nodes = nodes, .step = step, .storage = std::move(storage)};
  feed.rows = shapes.empty() ? static_cast<double>(workload.train.batch) : mean_rows(shapes);
  const double tokens = shapes.empty() ? static_cast<double>(workload.model.context() + workload.model.target_context())
                                       : mean_tokens(shapes) / feed.rows;
  feed.row_bytes = static_cast<double>(shard_token_bytes(workload.model)) * tokens;
  return feed;
}

std::string offered_feed_text(const OfferedFeed& feed) {
  const std::string each = feed.nodes > 1 ? fmt::format(" on each of {} nodes", with_commas(feed.nodes)) : "";
  std::string text = fmt::format(
      "feed: {} rows/s and {} of shards{}; data.folder is on {}", with_commas(std::llround(feed.rows_per_second())),
      to_string(BytesPerSecond(feed.rows_per_second() * feed.row_bytes)), each, feed.storage.name);
  const std::optional<double> spare = feed.spare();
  if (!spare) return text + fmt::format(": {}\n", feed.storage.source);
  text += fmt::format(": {}{} ({})", to_string(*feed.storage.read),
                      feed.storage.reads_per_second
                          ? fmt::format(", {} small reads/s", with_commas(std::llround(*feed.storage.reads_per_second)))
                          : "",
                      feed.storage.source);
  const std::optional<Bytes> enough = feed.enough();
  if (*spare >= 1) {
    text += fmt::format(": {:.3g} x as much\n", *spare);
    if (*spare < kTooMuch || !enough || *enough >= feed.storage.size) return text;
    text += fmt::format("hint: size: {} is enough for the feed", size_text(*enough));
    if (!feed.storage.price) return text + "\n";
    const double less = static_cast<double>((feed.storage.size - *enough).count()) / 0x1p30;
    return text + fmt::format(", and costs {} a month less\n", to_string(Dollars(feed.storage.price->count() * less)));
  }
  return text + fmt::format(
                    ": STARVES in the first epoch: {:.3g} of what is taken, {} a step instead of {}\n"
                    "hint: {}data.folder on a local SSD: volumes: {{ /scratch: {{ local_ssd: true }} }}\n",
                    *spare, to_string(feed.step * (1 / *spare)), to_string(feed.step),
                    enough ? fmt::format("size: {} is enough; or ", size_text(*enough)) : "");
}

Node offered_feed_node(const OfferedFeed& feed) {
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  return Node::map({{"rows_per_second", feed.rows_per_second()},
                    {"row_bytes", feed.row_bytes},
                    {"nodes", feed.nodes},
                    {"needed_bytes_per_second", feed.needed().count()},
                    {"needed_reads_per_second", feed.reads()},
                    {"storage", feed.storage.name},
                    {"read_bytes_per_second", feed.storage.read ? Node(feed.storage.read->count()) : Node()},
                    {"reads_per_second", maybe(feed.storage.reads_per_second)},
                    {"spare", maybe(feed.spare())},
                    {"enough_bytes", feed.enough() ? Node(feed.enough()->count()) : Node()},
                    {"source", feed.storage.source}});
}

}  // namespace systole
