#pragma once
// Amounts as Kubernetes writes them: "500m", "2k", "16Gi", "1e3" (apimachinery, resource.Quantity).

#include <optional>
#include <string_view>

namespace systole {

// In the unit itself: cores, bytes, a count. Nothing for what is no amount, is below zero or beyond an int64.
std::optional<double> quantity_of(std::string_view text);

}  // namespace systole
