#pragma once
// When a job is due, as a document says it:
//
//   schedule: "30 2 * * *"                    a cron expression (cron.h), in UTC
//   schedule: { cron: "30 2 * * mon-fri", time_zone: Europe/Berlin, start_within: 6h }
//
// A run that nobody started at its time, because the machine was off or another run was going on, may start that much
// later; of several that were missed only the last one starts. After that it is skipped.

#include <optional>

#include "describe/spec/cron.h"
#include "ground/base/document.h"
#include "ground/base/units.h"

namespace systole {

struct CronSchedule {
  CronExpression cron;
  TimeZone zone = {};
  Seconds start_within{3600.0};

  std::int64_t next(std::int64_t after) const { return cron.next(zone, after); }  // Unix seconds
  // The last time that it was due at or before `now`, if it may still start.
  std::optional<std::int64_t> latest(std::int64_t now) const;
  // "2026-11-28T02-30+0100", by the zone's clocks; of UTC "2026-11-28T02-30Z". A name of a folder.
  std::string name_of(std::int64_t due) const;
  std::optional<std::int64_t> due_of(std::string_view name) const;  // nothing: no such name
};

// Errors: invalid and not_found, at their place.
Result<CronSchedule> read_schedule(const Node& node);

}  // namespace systole
