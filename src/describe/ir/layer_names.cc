#include "describe/ir/layer_names.h"

#include <charconv>

#include "ground/base/error.h"

namespace systole {
namespace {

constexpr std::string_view kOpen = "{layer";

// Parses and consumes the number after `sign`; nothing when `rest` does not start with `sign`.
std::optional<std::int64_t> number_behind(char sign, std::string_view& rest) {
  if (!rest.starts_with(sign)) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
  if (failed != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

}  // namespace

std::string LayerName::of(std::int64_t index) const {
  return fmt::format("{}{}{}", prefix, first + step * index, after);
}

std::string LayerName::from(std::int64_t layer) const {
  const std::string times = step == 1 ? "" : fmt::format("*{}", step);
  const std::string plus = layer == 0 ? "" : fmt::format("+{}", layer);
  return fmt::format("{}{{layer{}{}}}{}", prefix, times, plus, after);
}

std::optional<LayerName> layer_name(std::string_view name) {
  const std::size_t at = name.find(kOpen);
  if (at == name.npos) return std::nullopt;
  std::string_view rest = name.substr(at + kOpen.size());
  LayerName result{std::string(name.substr(0, at)), "", 0, 1};
  result.step = number_behind('*', rest).value_or(1);
  result.first = number_behind('+', rest).value_or(0);
  CHECK(rest.starts_with('}') && result.step > 0, "a name of layers: '{}'", name);
  result.after = rest.substr(1);
  return result;
}

}  // namespace systole
