#pragma once
// Names of a run's event files: events/000.jsonl for its first process, and so on.

#include <cstdint>
#include <string>
#include <string_view>

namespace systole {

// "events/003.jsonl"
std::string event_file_of(std::int64_t number);
// The number in such a path, 3. REQUIRES: list_event_files (run_files.h) returned it.
std::int64_t number_of_event_file(std::string_view path);

}  // namespace systole
