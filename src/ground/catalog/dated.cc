#include "ground/catalog/dated.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace systole {
namespace {

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::chrono::year_month_day day_of(std::string_view date) {
  using namespace std::chrono;
  return {year(number(date.substr(0, 4))),
          month(date.size() < 7 ? 1U : static_cast<unsigned>(number(date.substr(5, 2)))),
          day(date.size() < 10 ? 1U : static_cast<unsigned>(number(date.substr(8, 2))))};
}

}  // namespace

bool is_date(std::string_view text) { return text.size() == 10 && is_partial_date(text); }

bool is_partial_date(std::string_view text) {
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  return day_of(text).ok();
}

std::optional<std::int64_t> days_since(std::string_view date, std::string_view today) {
  if (date.empty()) return std::nullopt;
  return (std::chrono::sys_days(day_of(today)) - std::chrono::sys_days(day_of(date))).count();
}

bool is_old(std::string_view date, std::string_view today, std::int64_t after) {
  const std::optional<std::int64_t> days = days_since(date, today);
  return !days || *days > after;
}

std::string age_text(std::string_view date, std::string_view today, std::int64_t after) {
  if (date.empty()) return "no date";
  return is_old(date, today, after) ? fmt::format("{}, {} days old", date, *days_since(date, today))
                                    : std::string(date);
}

}  // namespace systole
