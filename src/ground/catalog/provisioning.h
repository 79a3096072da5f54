#pragma once
// The terms on which a machine is had.

#include <optional>
#include <string>
#include <string_view>

namespace systole {

enum class Provisioning {
  on_demand,      // by the second, until it is given back
  spot,           // may be taken away at any time
  flex_start,     // waits for its turn, then for a stated time
  calendar,       // for stated days, asked for ahead
  commitment_1y,  // paid for a year, used or not
  commitment_3y,
  reservation,  // set aside beforehand; its price is that of the terms beneath
  own,          // one's own: this machine, a cluster of the house
};
constexpr int kNumProvisionings = 8;

constexpr std::string_view kProvisioningNames[kNumProvisionings] = {
    "on_demand", "spot", "flex_start", "calendar", "commitment_1y", "commitment_3y", "reservation", "own"};

constexpr std::string_view name_of(Provisioning terms) { return kProvisioningNames[static_cast<int>(terms)]; }

}  // namespace systole
