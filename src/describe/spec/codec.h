#pragma once
// A codec reads the value of one key out of a document into its field of a Workload, and writes it back. It knows the
// type, the range and the allowed values, so the schema says each of them once. A field is named by AT(train.batch).

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
  std::vector<std::string> allowed;  // of a choice
  // Errors: at the node's place, kind invalid or unsupported.
  std::function<Status(const Node&, Workload&)> read;
  // Null when the field is not set. What it gives reads back to the same field.
  std::function<Node(Workload&)> write;
};

// Integers; "10k", "1.5M" and "300B" mean what they say.
Codec count_codec(Field<std::int64_t> at, std::int64_t lowest, std::int64_t highest);
Codec optional_count_codec(Field<std::optional<std::int64_t>> at, std::int64_t lowest, std::int64_t highest);
Codec counts_codec(Field<std::vector<std::int64_t>> at, std::int64_t lowest, std::int64_t highest);
// Finite numbers from `lowest` to `highest`; `open`: lowest itself is too low.
Codec number_codec(Field<double> at, double lowest, double highest, bool open = false);
Codec fraction_codec(Field<double> at);  // 0 to 1, also written "5%"
Codec bool_codec(Field<bool> at);
Codec text_codec(Field<std::string> at);
Codec texts_codec(Field<std::vector<std::string>> at);  // one text or a list of them
// The words of a command line: a list, or one text that is cut at spaces. Not empty.
Codec command_codec(Field<std::vector<std::string>> at);
Codec bytes_codec(Field<Bytes> at, Bytes lowest);
Codec optional_range_codec(Field<std::optional<CountRange>> at, std::int64_t lowest, std::int64_t highest);
Codec optional_bytes_codec(Field<std::optional<Bytes>> at, Bytes lowest);
Codec optional_seconds_codec(Field<std::optional<Seconds>> at);
Codec interval_codec(Field<Interval> at);
Codec portion_codec(Field<Portion> at);
Codec dtype_codec(Field<DType> at);         // a floating-point type
Codec master_dtype_codec(Field<DType> at);  // f32 or f64: of what small updates are added to
Codec recompute_codec(Field<RecomputeSpec> at);
Codec mesh_codec(Field<std::vector<std::pair<std::string, std::int64_t>>> at);
Codec sharding_codec(Field<std::vector<ParameterSharding>> at);
Codec labels_codec(Field<std::map<std::string, std::string>> at);
// A name that is kept for later: refused, with the reason.
Codec reserved_codec(std::string reason);

// "one of a, b or c"; `later`: values that a later version will take, refused by name.
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

}  // namespace systole
