#pragma once
// Columns of a table of results that are fields of the input's rows. Their types follow from the values of all rows:
// true and false, whole numbers, numbers, texts, or lists of one of these. Values of several types are texts, and maps
// and other lists are their JSON.

#include <vector>

#include "execute/serve/batch/batch_input.h"
#include "execute/serve/batch/result_columns.h"

namespace systole {

// Errors, with the key `columns`: invalid: no row has the field.
Status check_carried(const BatchJob& job, const BatchInput& input);

// A column for each of job.columns, in their order.
std::vector<ResultColumn> carried_columns(const BatchJob& job, const BatchInput& input);
// Their values in a row of the input; null where it has none, or cannot be read.
ResultRow carried_row(const BatchJob& job, const BatchInput& input, std::size_t row,
                      const std::vector<ResultColumn>& columns);

}  // namespace systole
