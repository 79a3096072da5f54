#include "predict/plan/storage_cost.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace systole {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double or_never(const std::optional<Dollars>& dollars) { return dollars ? dollars->count() : kNever; }

WithStorage with_storage(const OfferedStorage& storage, Seconds step, const std::optional<DollarsPerHour>& price,
                         const StorageWish& wish) {
  WithStorage with;
  const Seconds fed = std::max(step, storage.rows) * storage.read + step * (1 - storage.read);
  with.step = std::max(fed, storage.saving) * (1 + storage.stall_share) + storage.stall;
  const Seconds total = with.step * wish.steps;
  if (price) with.dollars = (*price + storage.price) * total;
  with.within = !(wish.deadline && total > *wish.deadline);
  if (wish.by_dollars && !with.dollars) with.within = false;
  if (wish.budget) with.within = with.within && with.dollars && *with.dollars <= *wish.budget;
  return with;
}

bool better(const WithStorage& a, const WithStorage& b, const StorageWish& wish) {
  if (a.within != b.within) return a.within;
  const double x = or_never(a.dollars), y = or_never(b.dollars);
  return wish.by_dollars ? std::tuple(x, a.step) < std::tuple(y, b.step)
                         : std::tuple(a.step, x) < std::tuple(b.step, y);
}

}  // namespace

WithStorage with_best_storage(const std::vector<OfferedStorage>& storages, Seconds step,
                              const std::optional<DollarsPerHour>& price, const StorageWish& wish) {
  if (storages.empty()) return with_storage({}, step, price, wish);
  WithStorage best = with_storage(storages[0], step, price, wish);
  for (std::size_t s = 1; s < storages.size(); ++s) {
    WithStorage one = with_storage(storages[s], step, price, wish);
    one.storage = s;
    if (better(one, best, wish)) best = one;
  }
  return best;
}

std::vector<OfferedStorage> worth_looking_at(const std::vector<OfferedStorage>& storages) {
  const auto beats = [&](std::size_t a, std::size_t b) {
    const OfferedStorage &x = storages[a], &y = storages[b];
    const auto of = [](const OfferedStorage& s) {
      return std::tuple(s.price, s.rows, s.read, s.saving, s.stall, s.stall_share);
    };
    const bool no_worse = x.price <= y.price && x.rows <= y.rows && x.read <= y.read && x.saving <= y.saving &&
                          x.stall <= y.stall && x.stall_share <= y.stall_share;
    return no_worse && (of(x) != of(y) || a < b);
  };
  std::vector<OfferedStorage> worth;
  for (std::size_t b = 0; b < storages.size(); ++b) {
    bool beaten = false;
    for (std::size_t a = 0; a < storages.size() && !beaten; ++a) beaten = a != b && beats(a, b);
    if (!beaten) worth.push_back(storages[b]);
  }
  return worth;
}

}  // namespace systole
