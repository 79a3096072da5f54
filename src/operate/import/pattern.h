#pragma once
// First workloads, one for each kind of place: small enough to read, whole enough to run or render as they are.

#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

enum class Pattern { local, vm, slurm, kubernetes };
const char* name_of(Pattern pattern);
std::span<const Pattern> patterns();
// Errors: invalid, with the nearest; those of other systems with the reason why there is none.
Result<Pattern> pattern_named(std::string_view name);

// The workload's text. Errors: invalid: a run could not be called `name`.
Result<std::string> first_workload(Pattern pattern, const std::string& name);

// The target that it is rendered for; "" where it is run instead.
std::string target_of(Pattern pattern);

}  // namespace systole
