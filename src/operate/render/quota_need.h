#pragma once
// The project quotas that machines use, and how much of each.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/machine_type.h"
#include "ground/catalog/quota.h"

namespace systole {

// Machines of one type on the same terms.
struct QuotaSpend {
  std::string machine, accelerator;  // catalog names; accelerator empty: only processors
  Provisioning terms = Provisioning::on_demand;
  std::int64_t machines = 1;
  std::int64_t gpus = 0, chips = 0;  // of all machines; TPU chips include their hosts
  std::int64_t disk_gb = 0;          // of all boot disks
  std::int64_t addresses = 0;        // internet addresses
};

// A value: it outlives the catalog that it was read from.
struct QuotaNeed {
  std::optional<QuotaRow> row;  // nothing: no list names the quota
  std::string of;               // what uses it: "16 x h100"
  std::int64_t amount = 0;      // in the row's unit
  std::string dimension;        // "gpu_family=NVIDIA_H100"; empty: none
  bool in_each_zone = false;    // the amount applies to each zone of the region that is used, however many there are
};

// In the order of the spends. Several uses of one quota are merged into one need.
std::vector<QuotaNeed> quota_needs(std::span<const QuotaRow> quotas, std::span<const MachineType> types,
                                   std::span<const QuotaSpend> spends);

// Whether it exceeds a new project's default; false if the default is unknown.
bool exceeds_default(const QuotaNeed& need);
// How to request the quota: a command, or the page for it. REQUIRES a row. `project` empty: gcloud's default. `region`
// empty: unknown, written as REGION. A need in each zone gives a command that refuses to run until the shell variable
// ZONES has the number of zones.
std::string quota_request(const QuotaNeed& need, const std::string& region, const std::string& project);

// `region`: of the quotas; empty: unknown, written as REGION in lines and left out of nodes.
std::vector<std::string> quota_lines(const std::vector<QuotaNeed>& needs, const std::string& region);
Node quota_node(const std::vector<QuotaNeed>& needs, const std::string& region);  // for --json

}  // namespace systole
