#pragma once
// Shared by the commands of `systole catalog`: the catalog with the user's overlay, filters, and sources.

#include <algorithm>
#include <string>
#include <vector>

#include "ground/catalog/offer.h"
#include "ground/catalog/tables.h"
#include "operate/cli/command.h"
#include "operate/run/catalog_files.h"

namespace systole::cli {

struct CatalogFilters {
  std::string accelerator, machine, region, zone;
};
void add_accelerator_filter(Subcommand command, CatalogFilters& filters);
void add_machine_filter(Subcommand command, CatalogFilters& filters);
void add_place_filters(Subcommand command, CatalogFilters& filters);

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
Node maybe_number(const std::optional<double>& value);             // null if empty

// catalog_<name>.cc
void add_catalog_accelerators(Subcommand catalog, Context& context);
void add_catalog_machines(Subcommand catalog, Context& context);
void add_catalog_slices(Subcommand catalog, Context& context);
void add_catalog_zones(Subcommand catalog, Context& context);
void add_catalog_prices(Subcommand catalog, Context& context);
void add_catalog_compare(Subcommand catalog, Context& context);

}  // namespace systole::cli
