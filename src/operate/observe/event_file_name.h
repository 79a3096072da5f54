#pragma once
// The names of a run's event files: events/000.jsonl of its first process, and so on.

#include <cstdint>
#include <string>
#include <string_view>

namespace systole {

// "events/003.jsonl"
std::string event_file_of(std::int64_t number);
// 3, of a path that ends in such a name. REQUIRES: list_event_files (run_files.h) gave it.
std::int64_t number_of_event_file(std::string_view path);

}  // namespace systole
