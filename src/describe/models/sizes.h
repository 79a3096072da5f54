#pragma once
// Refusals that every family makes of its sizes, by the workload's keys.

#include <cstdint>

namespace systole {

// Errors of all: Failure(invalid) that names model.<key> and the values that would do.
void require_positive(const char* key, std::int64_t value);
void require_share(const char* key, double value);  // from 0 up to but not 1
void require_divides(const char* part_key, std::int64_t part, const char* whole_key, std::int64_t whole);
// Rows or caches of `length` positions for a model that has `context`, which is model.<key>.
void require_length(const char* what, std::int64_t length, std::int64_t context, const char* key);

}  // namespace systole
