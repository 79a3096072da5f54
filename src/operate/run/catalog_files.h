#pragma once
// The catalog as this user sees it: the built-in entries, overlaid by the user's files.

#include <string>

#include "ground/base/clock.h"
#include "ground/catalog/catalog.h"
#include "ground/catalog/tables.h"

namespace systole {

struct CatalogView {
  Catalog catalog;
  CatalogTables tables;
  std::string today;  // "2026-11-27"
};
// Errors: all errors in the user's files at once.
Result<CatalogView> open_catalog_view(Clock& clock);

}  // namespace systole
