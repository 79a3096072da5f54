#pragma once
// A cell as JSON has it: numbers, true and false, texts, lists, null. Dates and times are texts of ISO 8601, decimals
// numbers with all their digits, UUIDs texts with dashes; bytes that are no UTF-8 are {"base64": "..."}.

#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/value.h"
#include "ground/base/document.h"

namespace systole::parquet {

Node node_of(const Column& column, const Cell& cell);
Node node_of(const Column& column, const Value& value);

}  // namespace systole::parquet
