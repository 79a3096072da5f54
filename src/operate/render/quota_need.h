#pragma once
// The limits of a project that machines run into, and how much of each they need.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/machine_type.h"
#include "ground/catalog/quota.h"

namespace systole {

// Machines of one type, all on the same terms.
struct QuotaSpend {
  std::string machine, accelerator;  // the catalog's names; accelerator empty: processors alone
  Provisioning terms = Provisioning::on_demand;
  std::int64_t machines = 1;
  std::int64_t gpus = 0, chips = 0;  // of all machines; chips of TPUs, whose hosts come with them
  std::int64_t disk_gb = 0;          // of all their boot disks
  std::int64_t addresses = 0;        // of the internet
};

// A value: it outlives the catalog that it was read from.
struct QuotaNeed {
  std::optional<QuotaRow> row;  // nothing: no list names the limit
  std::string of;               // what spends it: "16 x h100"
  std::int64_t amount = 0;      // in the row's unit
  std::string dimension;        // "gpu_family=NVIDIA_H100"; empty: none
};

// In the order of what is spent; what several spend of the same limit is one need.
std::vector<QuotaNeed> quota_needs(std::span<const QuotaRow> quotas, std::span<const MachineType> types,
                                   std::span<const QuotaSpend> spends);

// Whether a new project has less of it than is needed; false where nobody knows what it has.
bool exceeds_default(const QuotaNeed& need);
// How a project asks for so much of it: a command, or the page that takes it. REQUIRES a row. `project` empty: gcloud's
// own.
std::string quota_request(const QuotaNeed& need, const std::string& region, const std::string& project);

// `region`: that the limits are of.
std::vector<std::string> quota_lines(const std::vector<QuotaNeed>& needs, const std::string& region);
Node quota_node(const std::vector<QuotaNeed>& needs, const std::string& region);  // for --json

}  // namespace systole
