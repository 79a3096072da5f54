#include "ground/base/error_code.h"

#include <array>

namespace systole {
namespace {

constexpr std::array<std::string_view, 25> kNames{
    "",
    "missing_key",
    "unknown_key",
    "unexpected_value",
    "no_such_name",
    "not_offered_there",
    "no_such_namespace",
    "namespace_ends",
    "quota_exceeded",
    "not_authenticated",
    "forbidden",
    "machines_away",
    "no_such_job",
    "flipped_bit",
    "collective_mismatch",
    "newer_version",
    "conflicting_keys",
    "no_such_environment",
    "no_such_command",
    "no_such_option",
    "no_such_run",
    "price_unknown",
    "model_not_found",
    "context_length_exceeded",
    "requirement_not_met",
};
static_assert(kNames.size() == static_cast<std::size_t>(ErrorCode::requirement_not_met) + 1);

}  // namespace

std::string_view name_of(ErrorCode code) { return kNames[static_cast<std::size_t>(code)]; }

std::optional<ErrorCode> error_code_of(std::uint64_t number) {
  if (number >= kNames.size()) return std::nullopt;
  return static_cast<ErrorCode>(number);
}

}  // namespace systole
