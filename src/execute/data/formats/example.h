#pragma once
// tf.train.Example (tensorflow/core/example/example.proto, feature.proto), the usual content of a TFRecord:
//
//   Example  { Features features = 1; }
//   Features { map<string, Feature> feature = 1; }
//   Feature  { oneof: BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; }
//   *List    { repeated bytes | float | int64 value = 1; }
//
// As protobuf reads it: of a name that occurs twice the last counts, numbers may be packed or not.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/record.h"

namespace systole {

struct Feature {
  enum class Kind { none, bytes, floats, integers };
  std::string_view name;
  Kind kind = Kind::none;
  std::vector<std::string_view> bytes;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
};

// The features, sorted by name. Views are of `record`. Errors: corrupt (not an Example, with the byte within it).
Result<std::vector<Feature>> parse_example(std::string_view record);

// The one byte string of feature `name`. Errors: corrupt; invalid (no such feature; not one byte string), naming the
// features there are.
Result<std::string_view> bytes_of_example(std::string_view record, std::string_view name);

// A field of a file whose records are Examples, or anything else: kWholeRecord, or bytes_of_example, with its place.
Result<std::string_view> field_of_example(const DataRecord& record, std::string_view name, const std::string& shown);

// An Example with a byte string for each field, sorted by name: as protobuf's deterministic serialization writes it.
// REQUIRES: the names differ.
std::string make_example(std::span<const RecordField> fields);

}  // namespace systole
