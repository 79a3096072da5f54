#pragma once
// What the commands of `systole catalog` share: the catalog with the user's files over it, filters, and sources.

#include <algorithm>
#include <string>
#include <vector>

#include "ground/catalog/offer.h"
#include "ground/catalog/tables.h"
#include "operate/cli/command.h"

namespace systole::cli {

struct CatalogView {
  Catalog catalog;
  CatalogTables tables;
  std::string today;
};
// Errors: of the user's files, all at once.
Result<CatalogView> open_catalog_view(Clock& clock);

struct CatalogFilters {
  std::string accelerator, machine, region, zone;
};
void add_accelerator_filter(Subcommand command, CatalogFilters& filters);
void add_machine_filter(Subcommand command, CatalogFilters& filters);
void add_place_filters(Subcommand command, CatalogFilters& filters);

// The catalog's name for what was asked; "" where nothing was. Errors: not_found with the nearest names.
Result<std::string> asked_accelerator(const CatalogView& view, const std::string& asked);

// Of paragraphs: they are easier to read in lines that are not very long.
inline std::size_t note_columns(int width) { return static_cast<std::size_t>(std::min(width, 100)); }

// Sources are long and few: rows carry a number, the texts stand below the table. What is old is marked.
class SourceNotes {
 public:
  // `dates_below`: dates stand with their sources, where a table is too wide for both.
  explicit SourceNotes(std::string today, bool dates_below = false)
      : today_(std::move(today)), dates_below_(dates_below) {}
  // "2026-07-30 [1]", "2026-07-30* [1]" where it is more than `old_after` days ago, "no date* [2]"; or "[1]", "[1]*".
  std::string note(const std::string& source, const std::string& date, std::int64_t old_after);
  std::string fact(const Dated& dated) { return note(dated.source, dated.date, kFactIsOldAfter); }
  std::string price(const Dated& dated) { return note(dated.source, dated.date, kPriceIsOldAfter); }
  // The sources by number, in lines of note_columns(width), then what '*' means where one was set.
  std::string text(int width) const;

 private:
  std::string today_;
  bool dates_below_, any_old_ = false;
  std::vector<std::string> sources_;
};

// {source, date, days_old, old} added to a document; days_old is null without a date.
void set_dated(Node& node, const std::string& source, const std::string& date, const std::string& today,
               std::int64_t old_after);

std::string range_text(const std::optional<NumberRange>& range);   // "4", "1-48", "-"
std::string gbit_text(const std::optional<BytesPerSecond>& rate);  // "200", "-": Gbit/s
Node maybe_number(const std::optional<double>& value);             // null without one

// catalog_<name>.cc
void add_catalog_accelerators(Subcommand catalog, Context& context);
void add_catalog_machines(Subcommand catalog, Context& context);
void add_catalog_slices(Subcommand catalog, Context& context);
void add_catalog_zones(Subcommand catalog, Context& context);
void add_catalog_prices(Subcommand catalog, Context& context);
void add_catalog_compare(Subcommand catalog, Context& context);

}  // namespace systole::cli
