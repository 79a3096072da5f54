#pragma once
// Base container images, each with a fixed tag and, if known, its digest.

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/catalog/catalog.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct ImageRow {
  std::string name, tag;                  // "nvidia/cuda", "13.0.2-runtime-ubuntu24.04"
  std::string digest;                     // "sha256:..."; empty: unknown
  std::vector<std::string> accelerators;  // of cpu, cuda, tpu
  std::string cuda;                       // CUDA version of its libraries
  bool for_models = false;                // base for Systole's own image; false: for user programs
  Dated dated;
  std::string note;

  std::string tagged() const { return name + ":" + tag; }
  std::string reference() const { return digest.empty() ? tagged() : tagged() + "@" + digest; }
};

// "sha256:" and 64 hexadecimal digits.
bool is_image_digest(std::string_view text);
// A tag that is reused for new images: latest, stable, nightly, and tags without a full version or date.
bool is_floating_tag(std::string_view tag);

extern const TableColumns kImageColumns;
ImageRow read_image(TableRow& row);

// data/catalog/images.csv, overridden by the user's images.csv: a row replaces the row with the same name and tag.
// `own`: the user's tables (read_catalog_tables); other tables are ignored. Errors: invalid, all at once.
Result<std::vector<ImageRow>> catalog_images(std::span<const CatalogFile> own = {});

}  // namespace systole
