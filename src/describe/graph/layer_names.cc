#include "describe/graph/layer_names.h"

#include <charconv>

#include "ground/base/error.h"

namespace systole {
namespace {

constexpr std::string_view kOpen = "{layer";

}  // namespace

std::string LayerName::of(std::int64_t index) const { return fmt::format("{}{}{}", before, first + index, after); }

std::string LayerName::from(std::int64_t layer) const {
  return layer == 0 ? before + "{layer}" + after : fmt::format("{}{{layer+{}}}{}", before, layer, after);
}

std::optional<LayerName> layer_name(std::string_view name) {
  const std::size_t at = name.find(kOpen);
  if (at == name.npos) return std::nullopt;
  std::string_view rest = name.substr(at + kOpen.size());
  LayerName result{std::string(name.substr(0, at)), "", 0};
  if (rest.starts_with('+')) {
    const auto [end, failed] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), result.first);
    CHECK(failed == std::errc(), "a name of layers: '{}'", name);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  CHECK(rest.starts_with('}'), "a name of layers: '{}'", name);
  result.after = rest.substr(1);
  return result;
}

}  // namespace systole
