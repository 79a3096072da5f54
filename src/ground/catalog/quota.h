#pragma once
// Cloud quotas: project limits that machines and chips count against, under the names in the cloud's error messages and
// command line.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/provisioning.h"
#include "ground/catalog/table_row.h"

namespace systole {

enum class QuotaOf { gpu, tpu, vcpu, local_ssd, disk, address };
std::string_view name_of(QuotaOf of);

struct QuotaRow {
  std::string metric, id;  // "NVIDIA_T4_GPUS", and the id on the Cloud Quotas page; empty: unknown
  QuotaOf of = QuotaOf::gpu;
  bool global = false;                       // per project; false: per region
  std::string unit;                          // "GPUs", "chips", "vCPUs", "GB"
  std::string dimension;                     // "gpu_family=NVIDIA_H100"; "vm_family": a limit per family; empty: none
  std::vector<Provisioning> terms;           // that count against it
  std::vector<std::string> accelerators;     // that count against it; empty: all
  std::vector<std::string> machines;         // patterns, that count against it; empty: all
  std::string usual;                         // usual limit of a project, in words; empty: unknown
  std::optional<std::int64_t> most_unasked;  // maximum default of a new project; nothing: unknown
  Dated dated;
  std::string note;
};

extern const TableColumns kQuotaColumns;
QuotaRow read_quota(TableRow& row);

// The quotas that a machine with this accelerator (may be empty) counts against on these terms: a row per limit, in
// order. Only rows with this `of`.
std::vector<const QuotaRow*> quotas_of(std::span<const QuotaRow> rows, QuotaOf of, std::string_view machine,
                                       std::string_view accelerator, Provisioning terms);

}  // namespace systole
