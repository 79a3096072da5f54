#pragma once
// TPU slices: a number of chips of a family in a shape. There are two notations:
//
//   v5p-128      by name; v2, v3, v4, v5p and tpu7x count TensorCores, v5litepod and v6e chips
//   v5p:4x4x4    by shape, as prove and plan print it: the chips along each axis
//
// The family may have any of its catalog names: v5e-8 is v5litepod-8.
//
// The table has one slice per name. Families whose chips form cubes of 4x4x4 joined by optical switches (v4, v5p,
// tpu7x) also offer any other shape of whole cubes. It has the same name as the table's slice of that size, so its
// shape must be given.

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
  bool counts_cores = false;        // its name counts TensorCores; false: chips
  std::vector<std::int64_t> shape;  // chips along each axis
  std::int64_t chips = 0, cores = 0, devices = 0, hosts = 0, chips_per_host = 0;
  std::string machine;      // of its hosts; empty: the TPU API names none
  std::string other_hosts;  // another division into machines, in words
  std::string gke_label;
  std::vector<bool> closes;  // per axis: whether it wraps around
  bool twists = false;       // can be wired as a twisted torus
  bool usual = true;         // the default shape of its name
  bool in_api = false, documented = false;
  Dated dated;
  std::string note;

  std::string shape_text() const;                                            // "4x4x4"
  std::string by_shape() const { return accelerator + ":" + shape_text(); }  // "v5p:4x4x4"
};

extern const TableColumns kSliceColumns;
TpuSlice read_tpu_slice(TableRow& row);

// Finds "v5p-128" or "v5p:4x4x4". Errors: not_found: no such family or name, with the nearest; invalid: no such shape,
// with the nearest.
Result<TpuSlice> find_tpu_slice(const Catalog& catalog, std::span<const TpuSlice> slices, std::string_view text);

// Whether the text is a TPU family and a number, as in "v5e-8", whether or not such a slice exists.
bool names_tpu_slice(const Catalog& catalog, std::string_view text);

}  // namespace systole
