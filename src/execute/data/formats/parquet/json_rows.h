#pragma once
// A whole Parquet file as lines of JSON, for those who take rows so.

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::parquet {

struct JsonRows {
  std::vector<std::string> columns;  // those that can be read
  std::string lines;                 // a row each
};

// `bytes` of a file that errors call `file`. Errors: as File::open and Rows::next; does_not_fit: more than `limit`.
Result<JsonRows> json_rows(std::string bytes, const std::string& file, Bytes limit = Bytes(std::int64_t{1} << 32));

}  // namespace systole::parquet
