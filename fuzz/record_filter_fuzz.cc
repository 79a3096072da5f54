// Filters and paths (execute/data/formats): whatever the text, parsing and using it ends in a value or an Error.

#include <cstdint>
#include <string_view>

#include "execute/data/formats/record_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace systole;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<RecordFilter> filter = RecordFilter::parse(text, {"fuzz.yaml", 1, 1});
  constexpr std::string_view kRecord = R"({"lang": "en", "score": 0.75, "ok": true, "a": [{"b": "1"}, null]})";
  if (filter.ok()) {
    (void)filter->keeps([&](const std::string& path) -> Result<FieldValue> {
      const FieldPath parsed = TRY(FieldPath::parse(path));
      return json_value_at(kRecord, parsed);
    });
  }
  if (const Result<FieldPath> path = FieldPath::parse(text); path.ok()) (void)json_text_at(kRecord, *path);
  return 0;
}
