#pragma once
// The schema of a Parquet file: a tree, written as its nodes in depth-first order, each with its number of children.
// A list is a group that says LIST around a repeated group around its element; older writers leave groups out.

#include <string>
#include <vector>

#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/thrift.h"

namespace systole::parquet {

struct SchemaElement {
  enum class Repetition { required = 0, optional = 1, repeated = 2 };
  Column leaf;  // its type and meaning
  bool has_type = false;
  Repetition repetition = Repetition::required;
  std::int64_t children = 0;
  std::int64_t converted = -1;  // the older annotation
  bool list = false, map = false;
  std::string strange;  // an annotation that changes the value and is not understood
};

SchemaElement read_schema_element(ThriftReader& thrift);
void write_schema_element(ThriftWriter& thrift, const SchemaElement& element);

// The leaves. Errors: corrupt: no tree, or one that is nested too deeply.
Result<std::vector<Column>> columns_of(const std::vector<SchemaElement>& schema);
// The tree of columns without `outside`.
std::vector<SchemaElement> schema_of(const std::vector<Column>& columns);

}  // namespace systole::parquet
