#pragma once
// What `systole catalog` shows: accelerators, machines, slices, zones and prices, each with source and date, as text and
// as a document.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/offer.h"
#include "ground/catalog/tables.h"
#include "ground/draw/folded_text.h"
#include "ground/draw/text_table.h"
#include "operate/run/catalog_files.h"

namespace systole {

struct CatalogFilters {
  std::string accelerator, machine, region, zone;
};

struct Shown {
  std::string text;  // for people; a table folds at the width that was asked for
  Node document;     // for --json
};

// The catalog's name of the requested accelerator; "" if none was requested. Errors: not_found with the nearest names.
Result<std::string> asked_accelerator(const CatalogView& view, const std::string& asked);

// Width of paragraphs; very long lines are hard to read.
inline std::size_t note_columns(int width) { return static_cast<std::size_t>(std::min(width, 100)); }

// Footnotes for sources, which are long and few: rows have a number, the texts are below the table. Old facts are
// marked.
class SourceNotes {
 public:
  // `dates_below`: dates go into the footnotes, if a table is too wide.
  explicit SourceNotes(std::string today, bool dates_below = false)
      : today_(std::move(today)), dates_below_(dates_below) {}
  // "2026-07-30 [1]", "2026-07-30* [1]" if older than `old_after` days, "no date* [2]"; or "[1]", "[1]*".
  std::string note(const std::string& source, const std::string& date, std::int64_t old_after);
  std::string fact(const Dated& dated) { return note(dated.source, dated.date, kFactIsOldAfter); }
  std::string price(const Dated& dated) { return note(dated.source, dated.date, kPriceIsOldAfter); }
  // The sources by number, in lines of note_columns(width), then the meaning of '*' if it was used.
  std::string text(int width) const;

 private:
  std::string today_;
  bool dates_below_, any_old_ = false;
  std::vector<std::string> sources_;
};

// Adds {source, date, days_old, old} to a document; days_old is null without a date.
void set_dated(Node& node, const std::string& source, const std::string& date, const std::string& today,
               std::int64_t old_after);

std::string range_text(const std::optional<NumberRange>& range);   // "4", "1-48", "-"
std::string gbit_text(const std::optional<BytesPerSecond>& rate);  // "200", "-": Gbit/s

struct CompareOptions {
  std::vector<std::string> names;
  std::string dtype = "bf16", region, terms = "on_demand";
};

// Errors of all: those of reading the tables; not_found with the nearest names: a name that the catalog does not have.
// One accelerator (all its facts) or, with an empty name, those of a kind ("gpu", "tpu"; "": both).
Result<Shown> show_accelerators(CatalogView& view, const std::string& name, const std::string& kind, int width);
Result<Shown> show_machines(CatalogView& view, const std::string& name, const CatalogFilters& filters, int width);
// `max_chips` 0: of any number.
Result<Shown> show_slices(CatalogView& view, const std::string& name, const std::string& accelerator,
                          std::int64_t max_chips, int width);
Result<Shown> show_zones(CatalogView& view, const CatalogFilters& filters, int width);
// `max_price`: by the hour. `all`: of regions too where no zone has the hardware.
Result<Shown> show_prices(CatalogView& view, const CatalogFilters& filters, const std::optional<double>& max_price,
                          bool all, int width);
Result<Shown> compare_accelerators(CatalogView& view, const CompareOptions& options, int width);

}  // namespace systole
