#pragma once
// The fields of a BigQuery table: as people write them, and those that the columns of a Parquet file become.
//
// Source: BigQuery's documentation, "Loading Parquet data from Cloud Storage", type conversions.

#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/parquet/metadata.h"

namespace systole {

struct BigQueryField {
  std::string name, type, mode = "NULLABLE";  // or REQUIRED, REPEATED
};
// "id:INT64,lang:STRING,embedding:FLOAT64:REPEATED". Errors: invalid: another type or mode, a name that is none, or is
// there twice, whatever its case.
Result<std::vector<BigQueryField>> parse_bigquery_fields(std::string_view text);
// That BigQuery takes it as a column's name. Errors: invalid.
Status check_bigquery_name(std::string_view name);

// Errors: unsupported: a column that is not read here, as a struct; invalid: a name that no column may have there, or
// two of them.
Result<std::vector<BigQueryField>> bigquery_fields(const parquet::Metadata& metadata);

}  // namespace systole
