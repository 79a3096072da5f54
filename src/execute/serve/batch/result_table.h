#pragma once
// The results of a finished batch as a table that databases read: a Parquet file (.parquet) or comma-separated values
// (.csv, .tsv, perhaps with .gz or .zst behind). It has the columns of the answers (result_columns.h) and, behind them,
// those of the input that the job asks for (carried_columns.h), in the order of the input's rows. It is made of the
// lines of the output, and is whole or not there. A file `table` in the journal's folder, written before it, says of what
// fields its columns are.
//
// In CSV a null is an empty field, and a list is its JSON.

#include "execute/serve/batch/batch_input.h"
#include "ground/store/store.h"

namespace systole {

// Writes job.table from `lines`, the output; replaces what is there. REQUIRES: the folder of the lines' journal is
// there. Errors: invalid: the lines are not those of the job; those of the store.
Status write_result_table(Store& store, const std::string& lines, const BatchJob& job, const BatchInput& input);

// Whether a table of these lines, with the columns that the job asks for, was begun, or is there.
Result<bool> is_recorded(Store& store, const std::string& lines, const BatchJob& job);

// That the table there is of the columns that the job asks for, of the same fields. `shown`: its path, for messages.
// Errors: exists: it has others, or is no table of these lines; those of its format and of the store.
Status check_result_table(Store& store, const std::string& lines, const BatchJob& job, const std::string& shown);

}  // namespace systole
