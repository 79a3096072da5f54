#pragma once
// What field() does with a name that a record does not have, the same for all formats: it may be one of a field's own, a
// path into JSON; otherwise the error names those that there are.

#include <span>

#include "execute/data/formats/record.h"

namespace systole {

// Whether the record as it is is meant; a record of one field only stands for it.
inline bool is_whole(std::string_view name) { return name.empty() || name == kWholeRecord; }

// `value_of`: the bytes of field i. For a name such as json.messages[*].content, where `json` is the i-th of `names`, the
// text at that path of its value, in `scratch`. Errors: invalid (nothing there, not JSON, no_such_field).
Result<std::string_view> nested_field(const RecordPlace& place, std::string_view what, std::string_view name,
                                      std::span<const std::string_view> names,
                                      const std::function<Result<std::string_view>(std::size_t)>& value_of,
                                      std::string& scratch);

// "record 3: the sample has no field 'text'; it has: jpg, txt", with the code missing_key. `what`: what a record of the
// format is called. The hint is the likely field as the key of a workload: "field: txt".
Error no_such_field(const RecordPlace& place, std::string_view what, std::string_view name,
                    std::span<const std::string_view> names);

// Which of the fields there are is probably meant; "" if there are none.
std::string likely_field(std::string_view name, std::span<const std::string> names);

}  // namespace systole
