#pragma once
// What storage adds to a candidate's time and price. A step takes the longer of computing and of getting its rows; a
// checkpoint stops training for a while. All of it grows with the devices' step, so a lower bound on that stays one.

#include <cstddef>
#include <optional>
#include <vector>

#include "describe/spec/volume.h"
#include "ground/base/units.h"

namespace systole {

// Storage that an offer may be used with.
struct OfferedStorage {
  DollarsPerHour price;    // that the run pays for it, beside the devices
  Seconds rows;            // the least time of a step's rows; zero: unknown
  double read = 1;         // share of the steps whose rows are read; the others' are in memory
  Seconds saving;          // the least time of a step: a checkpoint is written before the next is due
  Seconds stall;           // of a step: the time of a checkpoint by the steps between two
  double stall_share = 0;  // of a step's time: for checkpoints that come after a time
  VolumeSpec volume;
  bool unpriced = false;  // the run pays for it, and nobody knows how much: `price` is then 0, and in no budget
};

// What a run is to keep to, and whether dollars decide.
struct StorageWish {
  bool by_dollars = false;
  double steps = 1;
  std::optional<Seconds> deadline;
  std::optional<Dollars> budget;
};

// A candidate with one of its offer's storages.
struct WithStorage {
  std::size_t storage = 0;         // index
  Seconds step;                    // with all that is waited for
  std::optional<Dollars> dollars;  // of all steps, the storage included; nothing: the devices' price is unknown
  bool within = true;              // deadline and budget
};

// The best storage for devices that take so long a step and cost so much, all together. Of those within deadline and
// budget, if one is; of equal time the cheaper. Without storages nothing is added.
WithStorage with_best_storage(const std::vector<OfferedStorage>& storages, Seconds step,
                              const std::optional<DollarsPerHour>& price, const StorageWish& wish);

// Leaves out the storages that are dearer than another and give less, or as much: they are the best of no step.
std::vector<OfferedStorage> worth_looking_at(const std::vector<OfferedStorage>& storages);

}  // namespace systole
