#pragma once
// Quotas of a cloud: the limits of a project that machines and chips spend, each by the name that the cloud's error
// message and its command line give it.

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
  std::string metric, id;  // "NVIDIA_T4_GPUS", and as the Cloud Quotas page names it; empty: not known
  QuotaOf of = QuotaOf::gpu;
  bool global = false;                       // of the project; else of a region
  std::string unit;                          // "GPUs", "chips", "vCPUs", "GB"
  std::string dimension;                     // "gpu_family=NVIDIA_H100"; "vm_family": a limit for each; empty: none
  std::vector<Provisioning> terms;           // that spend it
  std::vector<std::string> accelerators;     // that spend it; empty: all
  std::vector<std::string> machines;         // patterns, that spend it; empty: all
  std::string usual;                         // what a project has, in words; empty: not known
  std::optional<std::int64_t> most_unasked;  // what a new project has of it at the most; nothing: not known
  Dated dated;
  std::string note;
};

extern const TableColumns kQuotaColumns;
QuotaRow read_quota(TableRow& row);

// What an accelerator (may be empty) of so many in a machine spends on these terms, a row for each limit, in their
// order. Rows of `of` alone.
std::vector<const QuotaRow*> quotas_of(std::span<const QuotaRow> rows, QuotaOf of, std::string_view machine,
                                       std::string_view accelerator, Provisioning terms);

}  // namespace systole
