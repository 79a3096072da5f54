#pragma once
// Container images that others are built on, each by a tag that stays what it is and, where it is known, its digest.

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/catalog/catalog.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct ImageRow {
  std::string name, tag;                  // "nvidia/cuda", "13.0.2-runtime-ubuntu24.04"
  std::string digest;                     // "sha256:..."; empty: not known
  std::vector<std::string> accelerators;  // of cpu, cuda, tpu
  std::string cuda;                       // version of its libraries
  bool for_models = false;                // Systole's own run on it; else a program of the user's
  Dated dated;
  std::string note;

  std::string tagged() const { return name + ":" + tag; }
  std::string reference() const { return digest.empty() ? tagged() : tagged() + "@" + digest; }
};

// "sha256:" and 64 hexadecimal digits.
bool is_image_digest(std::string_view text);
// A tag that names another image each day or week: latest, stable, nightly, and those without a whole version or date.
bool is_floating_tag(std::string_view tag);

extern const TableColumns kImageColumns;
ImageRow read_image(TableRow& row);

// data/catalog/images.csv, and over it the user's images.csv, of which a row takes the place of that of its name and
// tag. `own`: the user's tables (read_catalog_tables); others than images are passed over. Errors: invalid, all at
// once.
Result<std::vector<ImageRow>> catalog_images(std::span<const CatalogFile> own = {});

}  // namespace systole
