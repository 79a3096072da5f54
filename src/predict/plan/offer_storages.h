#pragma once
// The storage that a workload's rows and checkpoints are on, beside each offer of hardware: the one that `volumes` says,
// or every tier and size that an open volume may become. So the search weighs devices, storage and checkpoints together.

#include <optional>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "ground/catalog/tables.h"
#include "predict/plan/offers.h"
#include "predict/plan/storage_choice.h"

namespace systole {

struct StorageFacts {
  std::optional<Bytes> holds;             // the rows' shards; nothing: unknown
  bool local_ssd = false;                 // an open volume may become the machines' disks
  Bytes checkpoint;                       // a whole one
  double rows = 0;                        // that the whole run takes
  std::vector<PlannedShape> shapes = {};  // of data.buckets, as offered_feed takes them
};

// Why an open volume at `mount` cannot be settled.
Error without_rows(const std::string& mount, const Workload& workload);
Error of_unknown_size(const std::string& mount);

// The volume of the checkpoints; null: they are in none.
const std::string* saved_in(const Workload& workload);

// Bytes that the volume of the rows has to hold: them, and the checkpoints that are in it too. Nothing: the rows' are
// unknown, or ever more checkpoints are kept.
std::optional<Bytes> needed_in(const Workload& workload, const std::string& mount, std::optional<Bytes> rows,
                               Bytes checkpoint);

class OfferStorages {
 public:
  // Borrows the workload and the tables. Errors: invalid: a volume is open, and what it has to hold is unknown, or it
  // has none of the rows; those of the tables.
  static Result<OfferStorages> of(const Workload& workload, const StorageFacts& facts, CatalogTables& tables);

  // Sets the storages of an offer. Nothing is set where data.folder is in no volume.
  void add(ClusterOffer& offer) const;
  // Why the price of the volume is not in any dollars; empty: it is, or costs the run nothing.
  const std::string& unpriced() const { return unpriced_; }
  bool open() const { return volume_ != nullptr && volume_->open(); }
  // What it has to hold. REQUIRES: open().
  Bytes needed() const { return needed_.value(); }
  // The path of the rows' volume; null: none.
  const std::string* mount() const { return mount_; }

 private:
  OfferStorages(const Workload& workload, const StorageFacts& facts) : workload_(workload), facts_(facts) {}
  OfferedStorage offered(const ClusterOffer& offer, const StorageSpeed& speed, DollarsPerHour price) const;
  void add_saving(const std::optional<BytesPerSecond>& write, OfferedStorage& storage) const;
  std::optional<Bytes> local_of(const ClusterOffer& offer) const;

  const Workload& workload_;
  StorageFacts facts_;
  std::optional<Bytes> needed_;  // of an open volume
  const std::string* mount_ = nullptr;
  const VolumeSpec* volume_ = nullptr;
  std::optional<StorageSpeed> saved_;  // that checkpoints are written to, where it is another volume
  bool saves_there_ = false;           // checkpoints are in the rows' volume
  std::span<const StorageTier> tiers_;
  std::span<const MachineType> machines_;
  std::string unpriced_;
};

// " and $0.35/h of storage", behind the rate of devices. Empty: none is paid for.
std::string storage_rate_words(const HardwareOption& offered, const Estimated& estimated);

// "filestore zonal of 1.00 TiB, $0.35/h". Empty: nothing is paid for or chosen.
std::string storage_words(const HardwareOption& offered, const Estimated& estimated);

}  // namespace systole
