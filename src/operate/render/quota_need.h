#pragma once
// The limits of a project that a job runs into, and how much of each it needs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/quota.h"

namespace systole {

// A value: it outlives the catalog that it was read from.
struct QuotaNeed {
  std::optional<QuotaRow> row;  // nothing: no list names the limit
  std::string of;               // what spends it: "16 x h100"
  std::int64_t amount = 0;      // in the row's unit
  std::string dimension;        // "gpu_family=NVIDIA_H100"; empty: none
};

std::vector<std::string> quota_lines(const std::vector<QuotaNeed>& needs, const std::string& region);
Node quota_node(const std::vector<QuotaNeed>& needs, const std::string& region);  // for --json

}  // namespace systole
