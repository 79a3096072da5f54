#pragma once
// The tables of the index, in one file: `runs` (index.h), `submitted` and `jobs` (submitted_index.h). It is derived
// data: deleting the file loses only what clusters reported about machines and no ledger has yet.

#include <string>

#include "operate/observe/sqlite.h"

namespace systole {

// Opens the index and creates its tables; they are empty if the file was missing or of another version. Errors: io,
// busy, no_space; corrupt if the file is not an index.
Result<Database> open_index(const std::string& file);
// The number of rows of a table: with it, a list of them is allocated once. Errors: io, corrupt.
Result<std::size_t> row_count(Database& database, const std::string& table);
// Empties the file, whatever it contains. Errors: io, busy, no_space.
Status clear_index(const std::string& file);

}  // namespace systole
