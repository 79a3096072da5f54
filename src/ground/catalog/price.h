#pragma once
// Prices, in dollars an hour without tax. A price that nobody knows is a state of its own: it is never 0, it compares
// with nothing, and it wins against nothing.
//
// The table has a row for each thing, region and list, with a column for each kind of terms. A cell is a number of
// dollars, `unknown`, or empty: the list says nothing of those terms. What a row is of:
//
//   machine     a machine with all that is in it
//   gpu         so many GPUs that are attached to a machine, which has its own price (T4, P4, P100, V100)
//   gpu_part    the GPUs alone of a machine that comes with them: a part of a price, not to be had by itself
//   chip        a TPU chip with its share of the host; a slice costs its chips times that

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/units.h"
#include "ground/catalog/provisioning.h"
#include "ground/catalog/table_row.h"

namespace systole {

enum class PriceOf { machine, gpu, gpu_part, chip };
std::string_view name_of(PriceOf of);

struct PriceCell {
  bool stated = false;                   // the list says something
  std::optional<DollarsPerHour> amount;  // none though stated: it says that nobody knows
};

enum class ListedAs { unknown, not_offered, offered };

struct PriceRow {
  PriceOf of = PriceOf::machine;
  std::string item;                // a machine type, or an accelerator
  std::int64_t count = 1;          // of the item, which the amounts are for
  std::string region;              // empty: everywhere
  std::vector<std::string> zones;  // empty: all of the region
  std::string slices;              // of v2 and v3: device or pod
  std::array<PriceCell, kNumProvisionings> cells;
  ListedAs offered = ListedAs::unknown;  // lists name regions where no zone has the hardware
  Dated dated;
  std::string note;

  const PriceCell& cell(Provisioning terms) const { return cells[static_cast<std::size_t>(terms)]; }
};

extern const TableColumns kPriceColumns;
PriceRow read_price(TableRow& row);

// What is paid for something on these terms, or that nobody knows it.
struct Price {
  std::optional<DollarsPerHour> amount;
  std::string of;  // "a3-highgpu-8g", "64 chips of v5p", "n1-standard-4 + 2 x t4"
  std::string region;
  Provisioning provisioning = Provisioning::on_demand;
  std::string currency = "USD";
  Dated dated;  // the oldest of what it is made of; no source where no list names it
  std::string note;

  bool known() const { return amount.has_value(); }
};

std::string to_string(DollarsPerHour amount);  // "$88.49/h", "$0.0335/h", "$0.00/h"
std::string to_string(const Price& price);     // that, or "unknown"

// Whether `a` is cheaper for certain. A price that is not known is cheaper than nothing; a known one is preferred to
// it.
bool costs_less(const Price& a, const Price& b);

// What is asked of a list.
struct PriceQuery {
  PriceOf of = PriceOf::machine;
  std::string_view item, region, zone;  // zone empty: any of the region
  std::string_view slices = {};
  std::int64_t count = 1;  // that the price is to be for; of a row for another number its multiple
  Provisioning provisioning = Provisioning::on_demand;
};

// The row that answers: the user's before the built-in ones, a known amount before an unknown one, the same count
// before another, then the newest. Null: no list names it.
const PriceRow* find_price_row(std::span<const PriceRow* const> rows, const PriceQuery& query);

// Without a row its amount is unknown, and `note` says that no list names it.
Price price_of(const PriceRow* row, const PriceQuery& query, std::string of);

// All of it together: unknown as soon as one of both is.
Price sum(const Price& a, const Price& b);

}  // namespace systole
