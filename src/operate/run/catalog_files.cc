#include "operate/run/catalog_files.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "operate/run/machine.h"

namespace systole {

Result<CatalogView> open_catalog_view(Clock& clock) {
  const std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  std::vector<CatalogFile> own = TRY(read_catalog_folder(folder));
  Catalog catalog = TRY(read_catalog());
  std::vector<CatalogFile> tables = TRY(read_catalog_tables(folder));
  std::ranges::move(tables, std::back_inserter(own));
  CatalogTables read = TRY(CatalogTables::read(own));
  TRY(read.check_own_names(catalog));
  return CatalogView{std::move(catalog), std::move(read), clock.timestamp().substr(0, 10)};
}

}  // namespace systole
