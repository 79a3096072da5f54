#pragma once
// The source and date of a figure. A date is YYYY-MM-DD, or its known part: YYYY-MM, YYYY, or nothing. A month or a
// year counts as its first day; a missing date counts as old.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

struct Dated {
  std::string source, date;
  std::string confidence;  // of the source, as judged by its collector: high, medium, low; empty: not stated
  Where where;             // in its file
  bool own = false;        // from the user's files
};

bool is_date(std::string_view text);          // YYYY-MM-DD
bool is_partial_date(std::string_view text);  // YYYY-MM-DD, YYYY-MM or YYYY; a valid month and day

// Days from `date` to `today`, a whole date; negative if it is in the future; none without a date.
// REQUIRES: is_partial_date(date) or empty; is_date(today).
std::optional<std::int64_t> days_since(std::string_view date, std::string_view today);

// Prices change within months; a chip's facts do not, but machines and zones come and go.
constexpr std::int64_t kPriceIsOldAfter = 90, kFactIsOldAfter = 365;  // days

bool is_old(std::string_view date, std::string_view today, std::int64_t after);
// "2026-07-30", "2026-07-30, 115 days old", "no date": for output beside a figure.
std::string age_text(std::string_view date, std::string_view today, std::int64_t after);

}  // namespace systole
