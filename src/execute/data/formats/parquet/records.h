#pragma once
// Parquet behind the interface of files of records (formats/record.h): a row is a record, its columns are the fields. A
// column is read from the first time that field() asks for it, so that the others cost nothing.

#include <memory>
#include <string>

#include "execute/data/formats/record.h"

namespace systole::parquet {

// In order only: a row of a column is found by reading the page before it. Errors: as File::open. field(): as
// File::column; invalid: a null, a list, a number, longer than the limit.
Result<std::unique_ptr<RecordReader>> open_records(const RecordFile& file, const RecordLimits& limits = {});

// Columns of texts, none of them null; their names are those of the first record's fields, which each record has.
Result<std::unique_ptr<RecordWriter>> create_records(Store& store, const std::string& path);

}  // namespace systole::parquet
