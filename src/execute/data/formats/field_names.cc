#include "execute/data/formats/field_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "execute/data/formats/field_path.h"

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

Error no_such_field(const RecordPlace& place, std::string_view what, std::string_view name,
                    std::span<const std::string_view> names) {
  constexpr std::size_t kShown = 20;
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  std::string hint = sorted.empty() ? "" : fmt::format("field: {}", sorted[0]);
  for (const std::string_view likely : {"txt", "text"})
    if (std::ranges::find(sorted, likely) != sorted.end()) hint = fmt::format("field: {}", likely);
  const std::size_t more = sorted.size() - std::min(sorted.size(), kShown);
  sorted.resize(sorted.size() - more);
  const std::string there =
      fmt::format("{}{}", fmt::join(sorted, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  if (is_whole(name))
    return record_error(ErrorKind::invalid, place,
                        fmt::format("which field of the {} is meant? It has: {}", what, there), hint);
  return record_error(ErrorKind::invalid, place, fmt::format("the {} has no field '{}'; it has: {}", what, name, there),
                      hint);
}

}  // namespace systole
