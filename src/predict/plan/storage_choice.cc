#include "predict/plan/storage_choice.h"

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

constexpr std::int64_t kMostGib = std::int64_t{1} << 32;  // as bytes they are an int64

struct Made {
  Kind kind;
  const char* of;
};
// Filestore regional is missing: the catalog has no speed of it. A Hyperdisk is: neither the throughput that is
// provisioned for it nor the price of that is known.
constexpr Made kMade[] = {{Kind::filestore, "basic-hdd"},
                          {Kind::filestore, "basic-ssd"},
                          {Kind::filestore, "zonal"},
                          {Kind::parallelstore, "new"},
                          {Kind::local_ssd, ""}};

bool may_be(const VolumeSpec& open, const Made& made) {
  if (open.kind == Kind::cheapest) return true;
  if (open.kind != made.kind) return false;
  return open.of == "auto" || open.of == made.of;
}

std::int64_t gib_of(Bytes bytes) { return bytes.count() / kGiB.count() + (bytes.count() % kGiB.count() != 0 ? 1 : 0); }

class Options {
 public:
  Options(const StorageAsk& ask, std::span<const StorageTier> tiers) : ask_(ask), tiers_(tiers) {}

  void add(const Made& made) {
    if (made.kind == Kind::local_ssd && !ask_.local) return;
    // The range of sizes that the tier of the smallest that holds the rows has, and of the next tier behind it.
    VolumeSpec volume{.kind = made.kind, .of = made.of, .size = Bytes()};
    for (std::int64_t from = gib_of(ask_.holds), before = -1; from != before;) {
      before = from;
      if (from > kMostGib) return;
      volume.size = Bytes(from << 30);
      const StorageTier* tier = tier_of_volume(volume, tiers_);
      if (tier == nullptr || !tier->price || !tier->least) return;
      from = add_sizes(volume, *tier, from);
    }
  }

  std::vector<StorageOption> take() {
    std::ranges::stable_sort(found_, [](const StorageOption& a, const StorageOption& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      return a.speed.read->count() > b.speed.read->count();
    });
    return std::move(found_);
  }

 private:
  // Sizes of one tier from `from` on. Returns where the next one begins; `from`: there is none.
  std::int64_t add_sizes(VolumeSpec volume, const StorageTier& tier, std::int64_t from) {
    const bool local = volume.kind == Kind::local_ssd;
    const std::int64_t least = gib_of(*tier.least), step = grain_of(tier);
    std::int64_t most = tier.most ? gib_of(*tier.most) : least;
    if (local) most = gib_of(*ask_.local);
    const bool grows = tier.read_per_tib.has_value();
    std::int64_t size = from <= least ? least : least + (from - least + step - 1) / step * step;
    for (; size <= most; size += step) {
      volume.size = Bytes(size << 30);
      if (&tier != tier_of_volume(volume, tiers_)) return size;
      push(volume, tier);
      if (!grows) return from;
    }
    // Filestore's zonal tier goes on in larger steps.
    volume.size = Bytes(size << 30);
    const StorageTier* next = tier_of_volume(volume, tiers_);
    return next != nullptr && next != &tier && size > from ? std::max(size, gib_of(*next->least)) : from;
  }

  static std::int64_t grain_of(const StorageTier& tier) {
    const auto step = static_cast<std::int64_t>(number_in_front(tier.step).value_or(1));
    return std::max<std::int64_t>(1, step);
  }

  void push(const VolumeSpec& volume, const StorageTier& tier) {
    StorageOption option{volume, speed_of_volume(volume, tiers_), {}, tier.region};
    if (!option.speed.read || !option.speed.cost || (ask_.saves && !option.speed.write)) return;
    option.cost = *option.speed.cost * static_cast<double>(option.speed.shared ? 1 : ask_.nodes);
    found_.push_back(std::move(option));
  }

  const StorageAsk& ask_;
  std::span<const StorageTier> tiers_;
  std::vector<StorageOption> found_;
};

OfferedFeed beside(const OfferedFeed& feed, const StorageOption& option) {
  OfferedFeed now = feed;
  now.storage = option.speed;
  return now;
}

std::string rate_text(const OfferedFeed& feed) {
  return fmt::format("{}, {} small reads/s", to_string(feed.needed()), with_commas(std::llround(feed.reads())));
}

}  // namespace

std::vector<StorageOption> storage_options(const VolumeSpec& open, const StorageAsk& ask,
                                           std::span<const StorageTier> tiers) {
  Options options(ask, tiers);
  for (const Made& made : kMade)
    if (may_be(open, made)) options.add(made);
  return options.take();
}

Result<StoragePick> cheapest_storage(const std::vector<StorageOption>& options, const OfferedFeed& feed, Bytes holds) {
  if (options.empty())
    return error(ErrorKind::does_not_fit, "nothing of the catalog whose speed and price are known holds {}",
                 to_string(holds))
        .hinted("a volume that is there already: bucket, lustre, nfs or a claim");
  const StorageOption* fastest = nullptr;
  double most = 0;
  for (const StorageOption& option : options) {
    OfferedFeed now = beside(feed, option);
    const double spare = *now.spare();
    if (spare >= kToSpare) return StoragePick{option, std::move(now), options.size() - 1};
    if (fastest == nullptr || spare > most) fastest = &option;
    most = std::max(most, spare);
  }
  return error(ErrorKind::does_not_fit,
               "no storage of the catalog gives {} with half to spare; most gives {}: {:.3g} x", rate_text(feed),
               fastest->speed.name, most)
      .hinted("fewer nodes, or a Lustre file system that is there: lustre: PROJECT/ZONE/INSTANCE");
}

std::string pick_text(const StoragePick& pick, Bytes holds) {
  const OfferedFeed& feed = pick.feed;
  const std::string nodes = feed.nodes > 1 ? fmt::format(", to each of {} nodes", with_commas(feed.nodes)) : "";
  const std::string reads =
      feed.storage.reads_per_second
          ? fmt::format(", {} small reads/s", with_commas(std::llround(*feed.storage.reads_per_second)))
          : "";
  return fmt::format(
      "{}, {} a month (price of {}): {}{} for {} ({} rows/s of {} bytes{}), and holds {}; the cheapest of {}",
      feed.storage.name, to_string(Dollars(pick.option.cost.count() * kMonthHours)), pick.option.region,
      to_string(*feed.storage.read), reads, rate_text(feed), with_commas(std::llround(feed.rows_per_second())),
      with_commas(std::llround(feed.row_bytes)), nodes, to_string(holds), counted(pick.others + 1, "size"));
}

}  // namespace systole
