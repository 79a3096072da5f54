#pragma once
// A codec reads the value of one key from a document into its field of a Workload, and writes it back. It knows the
// type, the range and the allowed values, so the schema states each of them once. AT(train.batch) names a field.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/document.h"

#define AT(field)                         \
  +[](::systole::Workload & w) -> auto& { \
    return w.field;                       \
  }

namespace systole {

template <typename T>
using Field = T& (*)(Workload&);

struct Codec {
  std::string type;                  // for people: "count", "one of mlp, gpt", "bytes"
  std::string range;                 // "1 to 10,000"; empty for none
  std::vector<std::string> allowed;  // values of a choice
  // Errors: invalid or unsupported, at the node's place.
  std::function<Status(const Node&, Workload&)> read;
  // Null when the field is not set. Reading what it writes gives the same field.
  std::function<Node(Workload&)> write;
};

// Integers; "10k", "1.5M" and "300B" are accepted.
Codec count_codec(Field<std::int64_t> at, std::int64_t lowest, std::int64_t highest);
Codec optional_count_codec(Field<std::optional<std::int64_t>> at, std::int64_t lowest, std::int64_t highest);
Codec counts_codec(Field<std::vector<std::int64_t>> at, std::int64_t lowest, std::int64_t highest);
// Finite numbers from `lowest` to `highest`; with `open`, `lowest` itself is excluded.
Codec number_codec(Field<double> at, double lowest, double highest, bool open = false);
Codec fraction_codec(Field<double> at);  // 0 to 1, also written "5%"
Codec bool_codec(Field<bool> at);
Codec flag_codec(Field<bool> at);                       // as bool_codec; not printed when false
Codec text_codec(Field<std::string> at);                // not printed when empty
Codec texts_codec(Field<std::vector<std::string>> at);  // one text or a list of them
// The words of a command line: a list, or one text split at spaces. Must not be empty.
Codec command_codec(Field<std::vector<std::string>> at);
Codec bytes_codec(Field<Bytes> at, Bytes lowest);
Codec optional_range_codec(Field<std::optional<CountRange>> at, std::int64_t lowest, std::int64_t highest);
Codec optional_bytes_codec(Field<std::optional<Bytes>> at, Bytes lowest);
Codec optional_seconds_codec(Field<std::optional<Seconds>> at);
Codec interval_codec(Field<Interval> at);
Codec portion_codec(Field<Portion> at);
Codec dtype_codec(Field<DType> at);         // a floating-point type
Codec master_dtype_codec(Field<DType> at);  // f32 or f64: the type of master weights, which take small updates
Codec recompute_codec(Field<RecomputeSpec> at);
Codec mesh_codec(Field<std::vector<std::pair<std::string, std::int64_t>>> at);
Codec sharding_codec(Field<std::vector<ParameterSharding>> at);
Codec labels_codec(Field<std::map<std::string, std::string>> at);
// A key reserved for later: refused, with the reason.
Codec reserved_codec(std::string reason);

// "one of a, b or c". `later`: values of a later version, refused by name.
Codec named_codec(std::vector<std::string> names, std::function<void(Workload&, std::size_t)> set,
                  std::function<std::size_t(Workload&)> get, std::vector<std::string> later = {});

template <typename Enum>
Codec choice_codec(Field<Enum> at, std::vector<std::pair<std::string, Enum>> values,
                   std::vector<std::string> later = {}) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto get = [at, values](Workload& w) {
    std::size_t i = 0;
    while (values[i].second != at(w)) ++i;
    return i;
  };
  return named_codec(
      std::move(names), [at, values](Workload& w, std::size_t i) { at(w) = values[i].second; }, get, std::move(later));
}

// As choice_codec; the first value is the default, and is not printed.
template <typename Enum>
Codec usual_choice_codec(Field<Enum> at, std::vector<std::pair<std::string, Enum>> values) {
  const Enum usual = values.front().second;
  Codec codec = choice_codec(at, std::move(values));
  codec.write = [at, usual, write = codec.write](Workload& w) { return at(w) == usual ? Node() : write(w); };
  return codec;
}

}  // namespace systole
