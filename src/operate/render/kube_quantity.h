#pragma once
// Kubernetes quantities: "500m", "2k", "16Gi", "1e3" (apimachinery, resource.Quantity).

#include <optional>
#include <string_view>

namespace systole {

// In base units: cores, bytes, a count. Nothing if it is not a quantity, is negative, or exceeds int64.
std::optional<double> quantity_of(std::string_view text);

}  // namespace systole
