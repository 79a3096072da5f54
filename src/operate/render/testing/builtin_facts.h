#pragma once
// The built-in catalog as render's input. For tests.

#include "ground/catalog/tables.h"
#include "operate/render/render.h"

namespace systole {

inline RenderFacts builtin_facts() {
  static const Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  static CatalogTables tables = CatalogTables::read().value();
  return {.catalog = &catalog,
          .machines = tables.machines().value(),
          .slices = tables.slices().value(),
          .zones = tables.zones().value(),
          .fabrics = tables.fabrics().value(),
          .storage = tables.storage().value(),
          .prices = tables.prices().value(),
          .quotas = tables.quotas().value(),
          .nccl = tables.nccl().value()};
}

}  // namespace systole
