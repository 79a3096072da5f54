#pragma once
// Prices, in dollars per hour without tax. An unknown price is a state of its own: it is never 0 and never cheaper than
// another price.
//
// The table has a row per item, region and price list, and a column per kind of terms. A cell is an amount in dollars,
// `unknown`, or empty: the list does not mention those terms. The item of a row:
//
//   machine     a whole machine
//   gpu         GPUs attached to a machine that has its own price (T4, P4, P100, V100)
//   gpu_part    only the built-in GPUs of a machine: part of a price, not sold separately
//   chip        a TPU chip with its share of the host; a slice costs this times its chips

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
  bool stated = false;                   // the list has an entry
  std::optional<DollarsPerHour> amount;  // none if stated: unknown
};

enum class ListedAs { unknown, not_offered, offered };

struct PriceRow {
  PriceOf of = PriceOf::machine;
  std::string item;                // a machine type or an accelerator
  std::int64_t count = 1;          // number of items that the amounts are for
  std::string region;              // empty: all
  std::vector<std::string> zones;  // empty: all in the region
  std::string slices;              // for v2 and v3: device or pod
  std::array<PriceCell, kNumProvisionings> cells;
  ListedAs offered = ListedAs::unknown;  // lists name regions where no zone has the hardware
  Dated dated;
  std::string note;

  const PriceCell& cell(Provisioning terms) const { return cells[static_cast<std::size_t>(terms)]; }
};

extern const TableColumns kPriceColumns;
PriceRow read_price(TableRow& row);

// The price of something on given terms; may be unknown.
struct Price {
  std::optional<DollarsPerHour> amount;
  std::string of;  // "a3-highgpu-8g", "64 chips of v5p", "n1-standard-4 + 2 x t4"
  std::string region;
  Provisioning provisioning = Provisioning::on_demand;
  std::string currency = "USD";
  Dated dated;  // the oldest of its parts; no source if no list has it
  std::string note;

  bool known() const { return amount.has_value(); }
};

std::string to_string(DollarsPerHour amount);  // "$88.49/h", "$0.0335/h", "$0.00/h"
std::string to_string(const Price& price);     // that, or "unknown"

// Whether `a` is certainly cheaper. An unknown price is never cheaper; a known one is cheaper than an unknown one.
bool costs_less(const Price& a, const Price& b);

// A lookup in the price table.
struct PriceQuery {
  PriceOf of = PriceOf::machine;
  std::string_view item, region, zone;  // zone empty: any in the region
  std::string_view slices = {};
  std::int64_t count = 1;  // number of items; rows for another number are scaled
  Provisioning provisioning = Provisioning::on_demand;
};

// The best matching row: the user's before the built-in ones, a known amount before an unknown one, the same count
// before another, then the newest. Null: no list has it.
const PriceRow* find_price_row(std::span<const PriceRow* const> rows, const PriceQuery& query);

// Without a row the amount is unknown, and `note` says that no list has it.
Price price_of(const PriceRow* row, const PriceQuery& query, std::string of);

// The sum; unknown if either is.
Price sum(const Price& a, const Price& b);

}  // namespace systole
