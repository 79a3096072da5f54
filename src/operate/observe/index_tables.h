#pragma once
// The tables of the index, all in one file: `runs` (index.h), `submitted` and `jobs` (submitted_index.h). It is
// derived: deleting the file loses nothing.

#include <string>

#include "operate/observe/sqlite.h"

namespace systole {

// With its tables, empty when it was not there or of another version. Errors: io, busy, no_space; corrupt when it is no
// index.
Result<Database> open_index(const std::string& file);
// Empties it, whatever it is. Errors: io, busy, no_space.
Status clear_index(const std::string& file);

}  // namespace systole
