#include "describe/spec/cron_schedule.h"

#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/iso_time.h"
#include "ground/base/nearest.h"
#include "ground/base/quantity.h"

namespace systole {
namespace {

constexpr Seconds kLeastLate{60.0}, kMostLate{31.0 * 86'400};

std::int64_t unix_of(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

Result<Seconds> read_late(const Node& node) {
  const Seconds late = TRY(as_seconds(node));
  if (late >= kLeastLate && late <= kMostLate) return late;
  return key_error(ErrorKind::invalid, "start_within", "{}: a run may start 1min to 31d late", node.text())
      .at(node.where())
      .hinted("start_within: 1h");
}

Error placed(Error wrong, const Node& node) {
  wrong.message = "schedule: " + wrong.message;
  return std::move(wrong).at(node.where()).about("schedule");
}

}  // namespace

std::optional<std::int64_t> CronSchedule::latest(std::int64_t now) const {
  std::optional<std::int64_t> last;
  const auto late = static_cast<std::int64_t>(std::floor(start_within.count()));
  for (std::int64_t due = next(now - late - 1); due <= now; due = next(due)) last = due;
  return last;
}

std::string CronSchedule::name_of(std::int64_t due) const {
  const std::int64_t offset = zone.offset(due), minutes = std::abs(offset) / 60;
  const std::string utc =
      to_iso8601(std::chrono::system_clock::time_point(std::chrono::seconds(due + offset))).substr(0, 16);
  return utc.substr(0, 13) + "-" + utc.substr(14) +
         (zone.name() == "UTC" ? "Z" : fmt::format("{}{:02}{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60));
}

std::optional<std::int64_t> CronSchedule::due_of(std::string_view name) const {
  constexpr std::size_t kLocal = std::string_view("2026-11-28T02-30").size();
  if (name.size() <= kLocal) return std::nullopt;
  std::string iso(name);
  iso[13] = ':';
  iso.insert(kLocal, ":00");
  if (iso.back() != 'Z' && iso.size() > 2) iso.insert(iso.size() - 2, ":");
  const auto time = from_iso8601(iso);
  if (!time.ok() || name_of(unix_of(*time)) != name) return std::nullopt;
  return unix_of(*time);
}

Result<CronSchedule> read_schedule(const Node& node) {
  const Node* cron = node.is_map() ? node.find("cron") : &node;
  if (cron == nullptr)
    return key_error(ErrorKind::invalid, "schedule", "cron is missing")
        .at(node.where())
        .hinted("schedule: { cron: \"30 2 * * *\", time_zone: Europe/Berlin }");
  const std::string text = TRY(cron->as_string());
  Result<CronExpression> expression = CronExpression::parse(text);
  if (!expression.ok()) return placed(std::move(expression).error(), *cron);
  CronSchedule schedule{.cron = std::move(expression).value()};
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == "time_zone") {
      const std::string name = TRY(entry.value.as_string());
      Result<TimeZone> zone = TimeZone::named(name);
      if (!zone.ok()) return placed(std::move(zone).error(), entry.value);
      schedule.zone = std::move(zone).value();
    } else if (entry.key == "start_within") {
      schedule.start_within = TRY(read_late(entry.value));
    } else if (entry.key != "cron") {
      return key_error(ErrorKind::invalid, "schedule." + entry.key, "unknown key")
          .coded(ErrorCode::unknown_key)
          .at(entry.where())
          .hinted(nearest_hint(entry.key, std::vector<std::string>{"cron", "time_zone", "start_within"}));
    }
  }
  return schedule;
}

}  // namespace systole
