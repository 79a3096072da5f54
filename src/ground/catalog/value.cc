#include <charconv>
#include <cmath>

#include "ground/catalog/catalog.h"

namespace systole {
namespace {

struct Unit {
  const char* name;
  CatalogUnit unit;
  bool decimal, binary;  // accepted prefixes
};

constexpr Unit kUnits[] = {{"FLOP/s", CatalogUnit::flop_rate, true, false},
                           {"B/s", CatalogUnit::bytes_per_second, true, true},
                           {"/s", CatalogUnit::per_second, true, false},
                           {"B", CatalogUnit::bytes, true, true}};
constexpr struct {
  const char* name;
  double seconds;
} kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
constexpr struct {
  const char* name;
  double factor;
  bool binary;
} kPrefixes[] = {{"", 1, false},       {"k", 1e3, false},   {"M", 1e6, false},    {"G", 1e9, false},
                 {"T", 1e12, false},   {"P", 1e15, false},  {"Ki", 0x1p10, true}, {"Mi", 0x1p20, true},
                 {"Gi", 0x1p30, true}, {"Ti", 0x1p40, true}};

Error bad(std::string_view text) {
  return error(ErrorKind::invalid, "'{}' is no value with a unit", text)
      .hinted(
          "units: FLOP/s, B/s, /s, B with k M G T P (bytes also Ki Mi Gi Ti); s ms us ns; $ and $/h; or a bare number");
}

Result<CatalogValue> with_unit(double number, std::string_view unit, std::string_view text) {
  if (unit.empty()) return CatalogValue{number, CatalogUnit::number};
  for (const auto& time : kTimes) {
    if (unit == time.name) return CatalogValue{number * time.seconds, CatalogUnit::seconds};
  }
  for (const Unit& u : kUnits) {
    for (const auto& prefix : kPrefixes) {
      if (unit != std::string(prefix.name) + u.name || !(prefix.binary ? u.binary : u.decimal)) continue;
      return CatalogValue{number * prefix.factor, u.unit};
    }
  }
  return bad(text);
}

}  // namespace

Result<CatalogValue> parse_catalog_value(std::string_view text) {
  const bool money = text.starts_with('$');
  const std::string_view body = money ? text.substr(1) : text;
  double number = 0;
  const auto [end, code] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (code != std::errc{} || !std::isfinite(number) || number < 0) return bad(text);
  std::string_view rest = body.substr(static_cast<std::size_t>(end - body.data()));
  if (money && rest.empty()) return CatalogValue{number, CatalogUnit::dollars};
  if (money && rest == "/h") return CatalogValue{number, CatalogUnit::dollars_per_hour};
  if (money) return bad(text);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return with_unit(number, rest, text);
}

const char* name_of(CatalogUnit unit) {
  switch (unit) {
    case CatalogUnit::number: return "";
    case CatalogUnit::flop_rate: return "FLOP/s";
    case CatalogUnit::bytes_per_second: return "B/s";
    case CatalogUnit::per_second: return "/s";
    case CatalogUnit::bytes: return "B";
    case CatalogUnit::seconds: return "s";
    case CatalogUnit::dollars: return "$";
    case CatalogUnit::dollars_per_hour: return "$/h";
  }
  return "";
}

}  // namespace systole
