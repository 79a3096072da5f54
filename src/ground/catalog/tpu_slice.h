#pragma once
// TPU slices: so many chips of a family in a shape, and the two ways to name one:
//
//   v5p-128      as it is asked for; v2, v3, v4, v5p and tpu7x count TensorCores, v5litepod and v6e chips
//   v5p:4x4x4    as prove and plan say it: the chips along each axis
//
// Of both the family goes by any name that the catalog has for it: v5e-8 is v5litepod-8.
//
// The table lists a slice for every name. Of the families whose chips hang together in cubes of 4x4x4 by optical
// switches (v4, v5p, tpu7x) any other shape of whole cubes can be had too; it goes by the same name, and its shape has
// to be asked for.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/catalog.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct TpuSlice {
  std::string accelerator, name;    // "v5p", "v5p-128"
  bool counts_cores = false;        // its name counts TensorCores, else chips
  std::vector<std::int64_t> shape;  // chips along each axis
  std::int64_t chips = 0, cores = 0, devices = 0, hosts = 0, chips_per_host = 0;
  std::string machine;      // of its hosts; empty: the TPU API names none
  std::string other_hosts;  // another cut into machines, in words
  std::string gke_label;
  std::vector<bool> closes;  // by axis: whether its ends are joined
  bool twists = false;       // can be wired as a twisted torus
  bool usual = true;         // the shape that its name stands for
  bool in_api = false, documented = false;
  Dated dated;
  std::string note;

  std::string shape_text() const;                                            // "4x4x4"
  std::string by_shape() const { return accelerator + ":" + shape_text(); }  // "v5p:4x4x4"
};

extern const TableColumns kSliceColumns;
TpuSlice read_tpu_slice(TableRow& row);

// "v5p-128" or "v5p:4x4x4". Errors: not_found: no such family or name, with the nearest; invalid: no such shape, with
// the nearest.
Result<TpuSlice> find_tpu_slice(const Catalog& catalog, std::span<const TpuSlice> slices, std::string_view text);

// Whether these are a TPU family and a number, as in "v5e-8", be there such a slice or not.
bool names_tpu_slice(const Catalog& catalog, std::string_view text);

}  // namespace systole
