#pragma once
// A cron expression: five fields that say at which minutes something is due.
//
//   30 2 * * mon-fri      minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec), day of the week
//                         (0-7 or sun-sat; 0 and 7 are Sunday)
//   */15 8-18 1,15 * *    a field is *, or a list of numbers, names and ranges; * and ranges may have a step
//   @daily                also @hourly, @weekly, @monthly, @yearly
//
// If both days are restricted, a day that either of them names counts, as in cron(8). Where clocks change: what is due
// in a time that they skip is due at the change; what is due in a time that comes twice is due once, the first time. Of
// an expression whose hour is *, or * with a step, every hour that passes counts.

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/time_zone.h"

namespace systole {

class CronExpression {
 public:
  // Errors: invalid: what is wrong with which field; an expression that is never due.
  static Result<CronExpression> parse(std::string_view text);

  const std::string& text() const { return text_; }  // as written
  // The same in the words that all programs with five fields read alike: no names, macros, or 7.
  std::string plain() const;
  // The same as OnCalendar= of systemd's timers: one line, or two where both days are restricted.
  std::vector<std::string> on_calendar(const TimeZone& zone) const;
  // The first time after this one at which it is due. Unix seconds, of a whole minute. Pure.
  std::int64_t next(const TimeZone& zone, std::int64_t after) const;

 private:
  struct Field {
    std::bitset<64> values;
    std::string plain;
    bool star = false;  // "*", without or with a step
  };
  static Result<Field> parse_field(std::size_t index, std::string_view text);
  Status check_days() const;
  bool is_due(std::int64_t local) const;  // at this second of local time
  bool is_due_day(std::int64_t local) const;

  std::string text_;
  Field minute_, hour_, day_, month_, weekday_;
};

}  // namespace systole
