#include "ground/base/requirement.h"

#include <algorithm>
#include <cmath>

#include "ground/base/number_from.h"

namespace systole {

bool Requirement::met_by(double value) const {
  if (value == bound) return equal;
  return above ? value > bound : value < bound;
}

bool is_metric_name(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  return !name.empty() && name.size() <= kLongest &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127 && c != '<' && c != '>' && c != '='; });
}

Result<Requirement> parse_requirement(std::string_view text) {
  const std::size_t sign = std::min(text.find_first_of("<>"), text.size());
  const std::string_view name = text.substr(0, sign), rest = text.substr(std::min(sign + 1, text.size()));
  const bool equal = rest.starts_with('=');
  const std::optional<double> bound = number_from<double>(rest.substr(equal ? 1 : 0));
  if (sign < text.size() && is_metric_name(name) && bound && std::isfinite(*bound))
    return Requirement{std::string(name), text[sign] == '>', equal, *bound, std::string(text)};
  return error(ErrorKind::invalid, "'{}' is no requirement: it takes a metric, one of >=, <=, > and <, and a number",
               text)
      .hinted("as in --require 'accuracy>=0.71'");
}

}  // namespace systole
