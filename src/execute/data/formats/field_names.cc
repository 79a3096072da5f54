#include "execute/data/formats/field_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "execute/data/formats/field_path.h"
#include "ground/base/nearest.h"

namespace systole {
Result<std::string_view> nested_field(const RecordPlace& place, std::string_view what, std::string_view name,
                                      std::span<const std::string_view> names,
                                      const std::function<Result<std::string_view>(std::size_t)>& value_of,
                                      std::string& scratch) {
  std::size_t best = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t size = names[i].size();
    if (size == 0 || name.size() <= size || !name.starts_with(names[i]) || (name[size] != '.' && name[size] != '['))
      continue;
    if (best == names.size() || size > names[best].size()) best = i;
  }
  if (best == names.size()) return no_such_field(place, what, name, names);
  std::string_view rest = name.substr(names[best].size());
  if (rest[0] == '.') rest.remove_prefix(1);
  const FieldPath path = TRY(FieldPath::parse(rest));
  Result<std::string> text = json_text_at(TRY(value_of(best)), path);
  if (!text.ok())
    return record_error(text.error().kind, place, fmt::format("field '{}': {}", names[best], text.error().message));
  scratch = *std::move(text);
  return std::string_view(scratch);
}

// "text" is the default, which nobody has mistyped.
std::string likely_field(std::string_view name, std::span<const std::string> names) {
  const std::vector<std::string> near = nearest(name, names, 1);
  if (!near.empty() && name != "text") return near[0];
  for (const char* likely : {"text", "txt"})
    if (std::ranges::find(names, likely) != names.end()) return likely;
  return names.empty() ? "" : names[0];
}

Error no_such_field(const RecordPlace& place, std::string_view what, std::string_view name,
                    std::span<const std::string_view> names) {
  constexpr std::size_t kShown = 20;
  std::vector<std::string> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  const std::string hint = sorted.empty() ? "" : "field: " + likely_field(name, sorted);
  const std::size_t more = sorted.size() - std::min(sorted.size(), kShown);
  sorted.resize(sorted.size() - more);
  const std::string there =
      fmt::format("{}{}", fmt::join(sorted, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  const std::string wrong = is_whole(name) ? fmt::format("which field of the {} is meant? It has: {}", what, there)
                                           : fmt::format("the {} has no field '{}'; it has: {}", what, name, there);
  return record_error(ErrorKind::invalid, place, wrong, hint).coded(ErrorCode::missing_key);
}

}  // namespace systole
