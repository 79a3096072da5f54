#pragma once
// Time zones of the IANA database, from the files that every system has (/usr/share/zoneinfo): by how much local time is
// ahead of UTC, and when that changes. gcc 12 lacks std::chrono's.
//
// A file is TZif (RFC 8536): a table of changes, and behind it a rule in POSIX's TZ form for the time after the last
// one, as far in the future as one asks. Leap seconds are not counted, as in Unix time.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  // "Europe/Berlin"; "UTC" needs no file. Errors: invalid: no such zone, with the nearest; not_found: no time zones on
  // this system; corrupt.
  static Result<TimeZone> named(const std::string& name, const std::string& folder = "/usr/share/zoneinfo");
  // Of a file's bytes. Errors: corrupt.
  static Result<TimeZone> parse(std::string name, std::string_view bytes);

  const std::string& name() const { return name_; }
  // Seconds east of UTC at this Unix time.
  std::int64_t offset(std::int64_t time) const;
  // The first time after this one at which the offset is another; nothing: never again.
  std::optional<std::int64_t> next_change(std::int64_t time) const;

 private:
  struct Change {
    std::int64_t time = 0, offset = 0;  // from `time` on
  };
  struct Day {  // of a year
    char form = 'M';
    int month = 1, week = 1, day = 0;  // 'M'; of 'J' and 'n' only `day`
    std::int64_t seconds = 7200;       // from its midnight, local time before the change
  };
  // A rule in POSIX's form.
  struct Rule {
    std::int64_t standard = 0, summer = 0;
    std::optional<std::array<Day, 2>> days = {};  // summer begins, ends; nothing: never
  };
  class RuleText;
  static std::int64_t midnight_of(const Day& day, int year);
  std::vector<Change> changes_by_rule(std::int64_t time) const;

  std::string name_ = "UTC";
  std::int64_t first_ = 0;       // offset before all changes
  std::vector<Change> changes_;  // in order
  std::optional<Rule> rule_;     // behind the last of them
};

}  // namespace systole
