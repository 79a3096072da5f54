#pragma once
// The terms on which a machine is provisioned.

#include <optional>
#include <string>
#include <string_view>

namespace systole {

enum class Provisioning {
  on_demand,      // billed by the second until released
  spot,           // may be preempted at any time
  flex_start,     // queued, then for a fixed time
  calendar,       // for fixed days, reserved ahead
  commitment_1y,  // paid for a year, used or not
  commitment_3y,
  reservation,  // reserved beforehand; priced by the underlying terms
  own,          // the user's own: this machine, an on-premises cluster
};
constexpr int kNumProvisionings = 8;

constexpr std::string_view kProvisioningNames[kNumProvisionings] = {
    "on_demand", "spot", "flex_start", "calendar", "commitment_1y", "commitment_3y", "reservation", "own"};

constexpr std::string_view name_of(Provisioning terms) { return kProvisioningNames[static_cast<int>(terms)]; }

}  // namespace systole
