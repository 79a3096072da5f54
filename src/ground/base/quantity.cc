#include "ground/base/quantity.h"

#include <cstdint>
#include <optional>

namespace systole {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr int kMostDigits = 18;  // mantissa times the largest unit (2^50) stays below 2^128

// digits / 10^decimals, exactly.
struct Decimal {
  std::uint64_t digits = 0;
  int decimals = 0;
};

struct Unit {
  const char* name;
  std::int64_t size;
};

constexpr Unit kByteUnits[] = {
    {"B", 1},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
    {"KiB", std::int64_t{1} << 10},
    {"MiB", std::int64_t{1} << 20},
    {"GiB", std::int64_t{1} << 30},
    {"TiB", std::int64_t{1} << 40},
    {"PiB", std::int64_t{1} << 50},
};
constexpr Unit kTimeUnits[] = {
    // in nanoseconds
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"min", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
};
constexpr Unit kCountUnits[] = {{"k", 1'000},         {"K", 1'000},         {"M", 1'000'000},
                                {"B", 1'000'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error refuse(std::string_view what, std::string_view text, std::string_view why, std::string hint) {
  return error(ErrorKind::invalid, "'{}' is not {}: {}", text.substr(0, 60), what, why).hinted(std::move(hint));
}

// Takes a number off the front of `rest`. Empty result: `rest` does not begin with a number, or it has too many digits.
std::optional<Decimal> take_number(std::string_view& rest) {
  Decimal number;
  int digits = 0, significant = 0;
  bool point = false;
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    const bool between = at > 0 && is_digit(rest[at - 1]) && at + 1 < rest.size() && is_digit(rest[at + 1]);
    if (c == '_' && between) continue;
    if (c == '.' && !point && digits > 0 && at + 1 < rest.size() && is_digit(rest[at + 1])) {
      point = true;
      continue;
    }
    if (!is_digit(c)) break;
    ++digits;
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(c - '0');
    number.decimals += point ? 1 : 0;
    if (number.digits != 0 && ++significant > kMostDigits) return std::nullopt;
    if (number.decimals > kMostDigits) return std::nullopt;
  }
  if (digits == 0) return std::nullopt;
  rest.remove_prefix(at);
  return number;
}

std::string_view take_unit(std::string_view& rest) {
  if (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && !is_digit(rest[length]) && rest[length] != ' ') ++length;
  const std::string_view unit = rest.substr(0, length);
  rest.remove_prefix(length);
  return unit;
}

// All units that equal `unit` except for case and an 'i', else all units.
std::string unit_hint(std::string_view number, std::string_view unit, std::span<const Unit> units) {
  const auto folded = [](std::string_view name) {
    std::string plain;
    for (char c : name) {
      if (c != 'i' && c != 'I') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return plain;
  };
  std::string alike, all;
  for (const Unit& candidate : units) {
    all += fmt::format("{}{}", all.empty() ? "" : ", ", candidate.name);
    const std::string plain = folded(candidate.name);
    const bool same = plain == folded(unit) || plain == folded(unit) + "b" || plain + "ec" == folded(unit) ||
                      plain + "n" == folded(unit) + "in" || plain + "r" == folded(unit) || plain == folded(unit) + "n";
    if (same) alike += fmt::format("{}'{}{}'", alike.empty() ? "" : " or ", number, candidate.name);
  }
  return alike.empty() ? "units: " + all : "write " + alike;
}

const Unit* find_unit(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (name == unit.name) return &unit;
  }
  return nullptr;
}

Wide power_of_ten(int exponent) {
  Wide power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// The common prefix of all parsers: refuse a sign, take number and unit.
struct Part {
  Decimal number;
  std::string_view written;  // the number's text
  std::string_view unit;
};

Result<Part> take_part(std::string_view& rest, std::string_view text, std::string_view what, std::string_view example) {
  if (text.starts_with('-')) return refuse(what, text, "it is negative", fmt::format("for example {}", example));
  const std::string_view before = rest;
  const std::optional<Decimal> number = take_number(rest);
  if (!number) {
    const bool long_number = !rest.empty() && is_digit(rest[0]);
    return refuse(what, text, long_number ? "it has too many digits" : "a number is missing",
                  fmt::format("for example {}", example));
  }
  const std::string_view written = before.substr(0, before.size() - rest.size());
  return Part{*number, written, take_unit(rest)};
}

template <typename Parse>
auto of_node(const Node& node, std::string_view what, Parse parse) -> decltype(parse(std::string_view())) {
  if (node.kind() != NodeKind::number && node.kind() != NodeKind::string) return node.wrong(what);
  auto parsed = parse(node.text());
  if (!parsed.ok()) return std::move(parsed).error().at(node.where());
  return parsed;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  constexpr std::string_view what = "a number of bytes";
  std::string_view rest = text;
  const Part part = TRY(take_part(rest, text, what, "512MB (10^6) or 512MiB (2^20)"));
  const Unit* unit = part.unit.empty() ? &kByteUnits[0] : find_unit(part.unit, kByteUnits);
  if (unit == nullptr || !rest.empty()) {
    return refuse(what, text, fmt::format("unit '{}{}' is not known", part.unit, rest),
                  unit_hint(part.written, part.unit, kByteUnits));
  }
  const Wide bytes = Wide{part.number.digits} * static_cast<Wide>(unit->size) / power_of_ten(part.number.decimals);
  if (bytes > static_cast<Wide>(INT64_MAX)) return refuse(what, text, "it is more than 2^63 - 1", "");
  return Bytes(static_cast<std::int64_t>(bytes));
}

Result<Seconds> parse_seconds(std::string_view text) {
  constexpr std::string_view what = "a duration";
  double nanoseconds = 0;
  std::int64_t before = INT64_MAX;
  std::string_view rest = text;
  do {
    const Part part = TRY(take_part(rest, text, what, "100s, 5min or 1h30min"));
    if (part.unit.empty() && part.number.digits == 0 && rest.empty()) return Seconds(0.0);
    if (part.unit.empty()) {
      return refuse(what, text, "the unit is missing",
                    fmt::format("write '{0}s' for seconds, '{0}min' or '{0}h'", part.written));
    }
    const Unit* unit = find_unit(part.unit, kTimeUnits);
    if (unit == nullptr) {
      return refuse(what, text, fmt::format("unit '{}' is not known", part.unit),
                    unit_hint(part.written, part.unit, kTimeUnits));
    }
    if (unit->size >= before) return refuse(what, text, "its units do not descend", "for example 1h30min");
    before = unit->size;
    nanoseconds += static_cast<double>(part.number.digits) / static_cast<double>(power_of_ten(part.number.decimals)) *
                   static_cast<double>(unit->size);
    if (rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
  } while (!rest.empty());
  return Seconds(nanoseconds / 1e9);
}

Result<std::int64_t> parse_count(std::string_view text) {
  constexpr std::string_view what = "a count";
  std::string_view rest = text;
  const Part part = TRY(take_part(rest, text, what, "1500, 2_000_000, 300k, 1.5B or 15T"));
  constexpr Unit one{"", 1};
  const Unit* unit = part.unit.empty() ? &one : find_unit(part.unit, kCountUnits);
  if (unit == nullptr || !rest.empty()) {
    return refuse(what, text, fmt::format("suffix '{}{}' is not known", part.unit, rest),
                  "suffixes: k (10^3), M (10^6), B or G (10^9), T (10^12)");
  }
  const Wide whole = Wide{part.number.digits} * static_cast<Wide>(unit->size);
  const Wide divisor = power_of_ten(part.number.decimals);
  if (whole % divisor != 0) return refuse(what, text, "it is not whole", "");
  if (whole / divisor > static_cast<Wide>(INT64_MAX)) return refuse(what, text, "it is more than 2^63 - 1", "");
  return static_cast<std::int64_t>(whole / divisor);
}

Result<Bytes> as_bytes(const Node& node) { return of_node(node, "a number of bytes", parse_bytes); }
Result<Seconds> as_seconds(const Node& node) { return of_node(node, "a duration", parse_seconds); }
Result<std::int64_t> as_count(const Node& node) { return of_node(node, "a count", parse_count); }

}  // namespace systole
