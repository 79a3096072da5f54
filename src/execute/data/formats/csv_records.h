#pragma once
// Comma-separated values (RFC 4180) of any size, read in order: a first row of column names, then a record a row. Lines
// end in LF or CR LF; a field in double quotes may hold commas, line breaks and doubled quotes; a byte order mark and
// empty lines are skipped. Tabs separate in a file that ends in .tsv. .gz and .zst are unpacked. CSV has no checksum.
//
// ground/base/csv.h reads small tables that people edit, whole, and reports all faults at once.

#include <memory>

#include "execute/data/formats/record.h"

namespace systole {

// Errors: not_found, io; invalid if the file is empty or has no good header. next(): after a row of another width the
// reader goes on with the next; after a quote that never closes it cannot.
Result<std::unique_ptr<RecordReader>> open_csv(const RecordFile& file, const RecordLimits& limits = {});

// The columns are `columns`, or without these the names of the first record's fields; each record has the same.
// Compressed by the path's ending.
Result<std::unique_ptr<RecordWriter>> create_csv(Store& store, const std::string& path,
                                                 const std::vector<std::string>& columns = {});

// Whether a path is one of a table: .csv or .tsv, perhaps before .gz or .zst.
bool is_csv_name(std::string_view path);

}  // namespace systole
