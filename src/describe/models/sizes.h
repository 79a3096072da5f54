#pragma once
// Checks of sizes for all families; they refuse by the workload's keys.

#include <cstdint>
#include <vector>

#include "describe/spec/broken_rule.h"

namespace systole {

// Errors of all: Failure(invalid) that names model.<key> and valid values.
void require_positive(const char* key, std::int64_t value);
void require_share(const char* key, double value);  // 0 <= value < 1
void require_divides(const char* part_key, std::int64_t part, const char* whole_key, std::int64_t whole);
// Checks that rows or caches of `length` positions fit `context`, the value of model.<key>.
void require_length(const char* what, std::int64_t length, std::int64_t context, const char* key);

// Fails with the first violated rule of a document, by its key.
void refuse(const std::vector<BrokenRule>& broken);

}  // namespace systole
