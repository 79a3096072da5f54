#include "predict/plan/offer_storages.h"

#include <algorithm>
#include <cmath>

#include "ground/base/errors.h"
#include "ground/catalog/price.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

// Where a run's checkpoints are, in its containers; empty: in a bucket.
std::string checkpoints_of(const Workload& workload) {
  constexpr std::string_view kFile = "file://";
  std::string folder = workload.checkpoint.folder;
  if (folder.starts_with(kFile)) folder.erase(0, kFile.size());
  if (folder.find("://") != folder.npos) return "";
  if (folder.starts_with('/')) return folder;
  return workload.folder.empty() ? folder : workload.folder + "/" + folder;
}

}  // namespace

Error without_rows(const std::string& mount, const Workload& workload) {
  return key_error(ErrorKind::invalid, "volumes",
                   "{}: its tier and size follow from the feed, and data.folder ({}) is not in it", mount,
                   workload.data.folder)
      .hinted(fmt::format("data.folder: {}/tokens; or filestore: zonal with a size", mount));
}

Error of_unknown_size(const std::string& mount) {
  return key_error(ErrorKind::invalid, "volumes",
                   "{}: its size follows from the data, and how large they are is unknown here", mount)
      .hinted("a size beside it, of all that it has to hold: { cheapest: true, size: 500GiB }");
}

const std::string* saved_in(const Workload& workload) {
  const std::string folder = checkpoints_of(workload);
  return folder.empty() ? nullptr : mount_of(workload, folder);
}

std::optional<Bytes> needed_in(const Workload& workload, const std::string& mount, std::optional<Bytes> rows,
                               Bytes checkpoint) {
  const std::string* saved = saved_in(workload);
  const CheckpointSpec& kept = workload.checkpoint;
  if (!rows || saved == nullptr || *saved != mount) return rows;
  if (kept.every.never()) return *rows + checkpoint;  // the last state is kept
  if (kept.keep_every > 0) return std::nullopt;
  const auto count = static_cast<double>(kept.keep + (kept.best ? 2 : 1));  // and one that is being written
  const double all = static_cast<double>(rows->count()) + static_cast<double>(checkpoint.count()) * count;
  return Bytes(all < 0x1p62 ? static_cast<std::int64_t>(all) : std::int64_t{1} << 62);
}

Result<OfferStorages> OfferStorages::of(const Workload& workload, const StorageFacts& facts, CatalogTables& tables) {
  OfferStorages storages(workload, facts);
  storages.tiers_ = TRY(tables.storage());
  storages.machines_ = TRY(tables.machines());
  storages.mount_ = mount_of(workload, workload.data.folder);
  const std::string* saved = saved_in(workload);
  storages.saves_there_ = saved != nullptr && saved == storages.mount_;
  for (const auto& [path, volume] : workload.volumes) {
    if (!volume.open() || (storages.mount_ != nullptr && *storages.mount_ == path)) continue;
    return without_rows(path, workload);
  }
  if (storages.mount_ == nullptr) return storages;
  storages.volume_ = &workload.volumes.at(*storages.mount_);
  if (storages.volume_->open()) {
    storages.needed_ = storages.volume_->size ? storages.volume_->size
                                              : needed_in(workload, *storages.mount_, facts.holds, facts.checkpoint);
    if (!storages.needed_) return of_unknown_size(*storages.mount_);
  } else if (const StorageSpeed speed = speed_of_volume(*storages.volume_, storages.tiers_);
             speed.made && !speed.cost) {
    storages.unpriced_ = fmt::format("the price of {} is unknown", speed.name);
  }
  if (saved != nullptr && !storages.saves_there_)
    storages.saved_ = speed_of_volume(workload.volumes.at(*saved), storages.tiers_);
  // Its runs' files outlive a pod.
  if (storages.saves_there_ || mount_of(workload, workload.folder) == storages.mount_)
    storages.facts_.local_ssd = false;
  return storages;
}

void OfferStorages::add(ClusterOffer& offer) const {
  if (volume_ == nullptr) return;
  std::vector<OfferedStorage> all;
  if (volume_->open()) {
    const StorageAsk ask{*needed_, offer.machines, local_of(offer), saves_there_};
    for (const StorageOption& option : storage_options(*volume_, ask, tiers_)) {
      all.push_back(offered(offer, option.speed, option.cost));
      all.back().volume = option.volume;
    }
  } else {
    const StorageSpeed speed = speed_of_volume(*volume_, tiers_);
    DollarsPerHour price;  // of what is there already, and of what nobody can price: unpriced() says so
    if (speed.cost) price = *speed.cost * static_cast<double>(speed.shared ? 1 : offer.machines);
    all.push_back(offered(offer, speed, price));
    all.back().volume = *volume_;
    all.back().unpriced = !unpriced_.empty();
  }
  offer.offered.storages = worth_looking_at(all);
}

OfferedStorage OfferStorages::offered(const ClusterOffer& offer, const StorageSpeed& speed,
                                      DollarsPerHour price) const {
  OfferedStorage storage{.price = price};
  const OfferedFeed feed = offered_feed(workload_, offer.machines, Seconds(1.0), speed, facts_.shapes);
  storage.rows = feed.least_step();
  // Later epochs read the memory of the nodes, where half of it holds the rows.
  const auto machine = std::ranges::find(machines_, offer.machine, &MachineType::name);
  if (facts_.holds && machine != machines_.end() && machine->memory_gib && feed.row_bytes > 0) {
    const auto held = static_cast<double>(facts_.holds->count());
    const double epochs = facts_.rows * feed.row_bytes / held;
    if (held < machine->memory_gib->least * 0x1p30 / 2 && epochs > 1) storage.read = 1 / epochs;
  }
  add_saving(saves_there_ ? speed.write : saved_ ? saved_->write : std::nullopt, storage);
  return storage;
}

void OfferStorages::add_saving(const std::optional<BytesPerSecond>& write, OfferedStorage& storage) const {
  const Interval& every = workload_.checkpoint.every;
  if (!write || every.never()) return;
  const Seconds time = facts_.checkpoint / *write;
  const bool beside = workload_.checkpoint.asynchronous;
  if (every.steps > 0) {
    (beside ? storage.saving : storage.stall) = time * (1.0 / static_cast<double>(every.steps));
  } else {
    storage.stall_share = std::max(0.0, time / every.time - (beside ? 1 : 0));
  }
}

// TPU machines have none.
std::optional<Bytes> OfferStorages::local_of(const ClusterOffer& offer) const {
  if (!facts_.local_ssd || offer.slice) return std::nullopt;
  const auto machine = std::ranges::find(machines_, offer.machine, &MachineType::name);
  if (machine == machines_.end() || !machine->local_ssd_gib || machine->local_ssd_gib->most <= 0) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(machine->local_ssd_gib->most * 0x1p30));
}

std::string storage_rate_words(const HardwareOption& offered, const Estimated& e) {
  if (offered.storages.empty()) return "";
  const OfferedStorage& storage = offered.storages[e.storage];
  if (storage.unpriced) return ", without its storage";
  return storage.price > DollarsPerHour() ? fmt::format(" and {} of storage", to_string(storage.price)) : "";
}

std::string storage_words(const HardwareOption& offered, const Estimated& e) {
  if (offered.storages.empty()) return "";
  const OfferedStorage& storage = offered.storages[e.storage];
  const bool paid = storage.unpriced || storage.price > DollarsPerHour();
  if (!paid && e.waited <= Seconds()) return "";
  std::string text = name_of(storage.volume.kind);
  if (!storage.volume.of.empty()) text += " " + storage.volume.of;
  if (storage.volume.size) text += " of " + to_string(*storage.volume.size);
  if (storage.price > DollarsPerHour()) text += fmt::format(", {}, in the dollars", to_string(storage.price));
  if (storage.unpriced) text += "; its price is unknown, and not in the dollars";
  if (e.waited > Seconds()) text += fmt::format("; {} a step waits for it, in the total", to_string(e.waited));
  return text;
}

}  // namespace systole
