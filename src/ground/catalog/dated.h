#pragma once
// Who says a figure, and when. A date is YYYY-MM-DD, or as much of it as is known: YYYY-MM, YYYY, nothing. What is only
// known to be of a month or a year counts as of its first day; what has no date at all is old.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

struct Dated {
  std::string source, date;
  std::string confidence;  // of who collected it: high, medium, low; empty: not said
  Where where;             // in its file
  bool own = false;        // of the user's files
};

bool is_date(std::string_view text);          // YYYY-MM-DD
bool is_partial_date(std::string_view text);  // that, YYYY-MM or YYYY; of a month and day that there are

// Days from `date` to `today`, a whole date; less than 0 when it is still to come; none without a date.
// REQUIRES: is_partial_date(date) or empty; is_date(today).
std::optional<std::int64_t> days_since(std::string_view date, std::string_view today);

// Prices move within months, what a chip does not at all; machines and zones come and go.
constexpr std::int64_t kPriceIsOldAfter = 90, kFactIsOldAfter = 365;  // days

bool is_old(std::string_view date, std::string_view today, std::int64_t after);
// "2026-07-30", "2026-07-30, 115 days old", "no date": what to print beside a figure.
std::string age_text(std::string_view date, std::string_view today, std::int64_t after);

}  // namespace systole
