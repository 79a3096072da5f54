#include "describe/spec/cron.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <set>

#include "describe/spec/cron_schedule.h"
#include "ground/base/clock.h"
#include "ground/base/iso_time.h"

namespace systole {
namespace {

std::int64_t at(const std::string& utc) {
  return std::chrono::system_clock::to_time_t(from_iso8601(utc + ":00Z").value());
}
std::string text_of(std::int64_t time) {
  return to_iso8601(std::chrono::system_clock::time_point(std::chrono::seconds(time))).substr(0, 16);
}

struct Case {
  const char *cron, *zone, *after;
  std::vector<std::string> due;  // UTC
};

TEST(Cron, is_due_when_people_expect) {
  const std::vector<Case> cases{
      {"30 2 * * *", "UTC", "2026-11-28T02:29", {"2026-11-28T02:30", "2026-11-29T02:30"}},
      {"30 2 * * *", "UTC", "2026-11-28T02:30", {"2026-11-29T02:30"}},
      {"30 2 * * MON-fri", "UTC", "2026-11-28T00:00", {"2026-11-30T02:30", "2026-12-01T02:30"}},
      {"*/20 8-9 * * *", "UTC", "2026-11-28T08:30", {"2026-11-28T08:40", "2026-11-28T09:00", "2026-11-28T09:20"}},
      {"0 12 13 * fri", "UTC", "2026-11-28T00:00", {"2026-12-04T12:00", "2026-12-11T12:00", "2026-12-13T12:00"}},
      {"0 0 * * 7", "UTC", "2026-11-28T00:00", {"2026-11-29T00:00", "2026-12-06T00:00"}},
      {"0 0 29 feb *", "UTC", "2097-01-01T00:00", {"2104-02-29T00:00"}},
      {"0 0 31 * *", "UTC", "2026-11-28T00:00", {"2026-12-31T00:00", "2027-01-31T00:00", "2027-03-31T00:00"}},
      {"@daily", "Asia/Kolkata", "2026-11-28T00:00", {"2026-11-28T18:30"}},
      // 2:00 to 3:00 does not exist on March 29, and is twice on October 25.
      {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", {"2026-03-29T01:00", "2026-03-30T00:30"}},
      {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00", {"2026-03-29T01:00", "2026-03-30T01:00"}},
      {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", {"2026-10-25T00:30", "2026-10-26T01:30"}},
      {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45", {"2026-10-26T01:30"}},
      {"30 * * * *", "Europe/Berlin", "2026-10-24T23:45", {"2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"}},
      {"30 * * * *", "Europe/Berlin", "2026-03-29T00:00", {"2026-03-29T00:30", "2026-03-29T01:30"}},
      {"15 2 * * *", "America/New_York", "2027-03-13T12:00", {"2027-03-14T07:00", "2027-03-15T06:15"}},
      // Half an hour, from 2:00 to 2:30.
      {"10 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", {"2026-10-03T15:30", "2026-10-04T15:10"}},
      // December 30 was skipped as a whole.
      {"0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00", {"2011-12-30T10:00", "2012-12-29T19:00"}},
  };
  for (const Case& each : cases) {
    const CronExpression cron = CronExpression::parse(each.cron).value();
    const TimeZone zone = TimeZone::named(each.zone).value();
    std::int64_t time = at(each.after);
    for (const std::string& due : each.due) {
      time = cron.next(zone, time);
      EXPECT_EQ(text_of(time), due) << each.cron << " in " << each.zone;
    }
  }
}

// Against a scan of all minutes.
TEST(Cron, equals_a_scan_of_all_minutes) {
  std::mt19937 random(11);
  const auto some = [&](int least, int most, bool all) {
    std::set<int> values;
    const int count = std::uniform_int_distribution<int>(1, 4)(random);
    for (int i = 0; i < count; ++i) values.insert(std::uniform_int_distribution<int>(least, most)(random));
    if (all)
      for (int value = least; value <= most; ++value) values.insert(value);
    return values;
  };
  const auto text = [](const std::set<int>& values, bool all) {
    std::string list;
    for (const int value : values) list += fmt::format("{}{}", list.empty() ? "" : ",", value);
    return all ? std::string("*") : list;
  };
  for (int trial = 0; trial < 40; ++trial) {
    std::array<bool, 5> all{};
    for (bool& each : all) each = random() % 2 == 0;
    const auto minutes = some(0, 59, all[0]), hours = some(0, 23, all[1]), days = some(1, all[2] ? 31 : 28, all[2]),
               months = some(1, 12, all[3]), weekdays = some(0, 6, all[4]);
    const std::string written = fmt::format("{} {} {} {} {}", text(minutes, all[0]), text(hours, all[1]),
                                            text(days, all[2]), text(months, all[3]), text(weekdays, all[4]));
    const CronExpression cron = CronExpression::parse(written).value();
    EXPECT_EQ(cron.plain(), written);
    const std::int64_t from = at("2027-02-20T11:17");
    std::int64_t due = cron.next({}, from);
    for (std::int64_t time = from + 60; time < from + 50 * 86'400; time += 60) {
      const std::time_t moment = time;
      std::tm utc{};
      gmtime_r(&moment, &utc);
      const bool day = days.contains(utc.tm_mday), weekday = weekdays.contains(utc.tm_wday);
      const bool is_due = minutes.contains(utc.tm_min) && hours.contains(utc.tm_hour) &&
                          months.contains(utc.tm_mon + 1) && (all[2] || all[4] ? day && weekday : day || weekday);
      ASSERT_EQ(is_due, due == time) << written << " at " << text_of(time);
      if (is_due) due = cron.next({}, time);
    }
  }
}

// The lines were read back by `systemd-analyze calendar`.
TEST(Cron, is_a_timer_of_systemd) {
  const TimeZone berlin = TimeZone::named("Europe/Berlin").value();
  const auto lines = [&](const char* text) { return CronExpression::parse(text).value().on_calendar(berlin); };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines("30 2 * * *"), Lines{"*-*-* 2:30:00 Europe/Berlin"});
  EXPECT_EQ(lines("*/30 8-9 * 1,2 mon-fri"), Lines{"Mon,Tue,Wed,Thu,Fri *-1,2-* 8,9:0,30:00 Europe/Berlin"});
  EXPECT_EQ(lines("0 12 13 * fri"), (Lines{"*-*-13 12:0:00 Europe/Berlin", "Fri *-*-* 12:0:00 Europe/Berlin"}));
}

TEST(Cron, says_which_field_is_wrong) {
  const auto wrong = [](const char* text) { return CronExpression::parse(text).error().message; };
  EXPECT_EQ(wrong("30 2 * *"), "'30 2 * *' has 4 of the five fields");
  EXPECT_EQ(wrong("60 2 * * *"), "'60' as its minute: a value is 0 to 59");
  EXPECT_EQ(wrong("0 2 * * fri-mon"), "'fri-mon' as its day of the week: the range ends before it begins");
  EXPECT_EQ(wrong("5/15 * * * *"), "'5/15' as its minute: a step is of * or a range: 5-59/15");
  EXPECT_EQ(wrong("*/0 * * * *"), "'*/0' as its minute: a step is 1 to 59");
  EXPECT_EQ(wrong("0 0 30 2 *"), "'0 0 30 2 *' never comes: no such month has such a day");
  EXPECT_EQ(wrong("0 0 */2 * mon"), "'*/2' beside '1': programs differ in which days these are");
  for (const char* text : {"", "@often", ", * * * *", "1,, * * * *", "*,1 * * * *", "- * * * *", "? * * * *",
                           "1-2-3 * * * *", "0 0 * * 8", "0 0 0 * *", "0 0 * 13 *", "99999999999 * * * *"})
    EXPECT_FALSE(CronExpression::parse(text).ok()) << text;
  EXPECT_EQ(CronExpression::parse("0 0 1-3 jan 5-7").value().plain(), "0 0 1,2,3 1 0,5,6");
}

CronSchedule schedule_of(const std::string& yaml) {
  return read_schedule(parse_yaml(yaml, "job.yaml").value()).value();
}

TEST(CronSchedule, starts_the_last_run_that_was_missed_if_it_may_still_start) {
  const CronSchedule nightly = schedule_of("{ cron: 30 2 * * *, time_zone: Europe/Berlin, start_within: 6h }");
  EXPECT_EQ(nightly.latest(at("2026-11-28T01:29")), std::nullopt);
  EXPECT_EQ(nightly.latest(at("2026-11-28T01:30")), at("2026-11-28T01:30"));
  EXPECT_EQ(nightly.latest(at("2026-11-28T07:30")), at("2026-11-28T01:30"));
  EXPECT_EQ(nightly.latest(at("2026-11-28T07:31")), std::nullopt);
  EXPECT_EQ(schedule_of("'*/5 * * * *'").latest(at("2026-11-28T07:31")), at("2026-11-28T07:30"));
}

TEST(CronSchedule, names_folders_by_the_clocks_of_the_zone) {
  const CronSchedule nightly = schedule_of("{ cron: 30 2 * * *, time_zone: Europe/Berlin }");
  const CronSchedule utc = schedule_of("30 2 * * *");
  const CronSchedule west = schedule_of("{ cron: 30 2 * * *, time_zone: America/St_Johns }");
  EXPECT_EQ(nightly.name_of(at("2026-11-28T01:30")), "2026-11-28T02-30+0100");
  EXPECT_EQ(nightly.name_of(at("2026-07-28T00:30")), "2026-07-28T02-30+0200");
  EXPECT_EQ(utc.name_of(at("2026-11-28T02:30")), "2026-11-28T02-30Z");
  EXPECT_EQ(west.name_of(at("2026-11-28T06:00")), "2026-11-28T02-30-0330");
  for (const CronSchedule* each : {&nightly, &utc, &west})
    EXPECT_EQ(each->due_of(each->name_of(at("2026-07-28T01:00"))), at("2026-07-28T01:00"));
  for (const char* name :
       {"", "latest", "2026-11-28T02-30", "2026-11-28T02-30Z.old", "2026-13-28T02-30Z", "xx26-11-28T02-30Z"})
    EXPECT_EQ(utc.due_of(name), std::nullopt) << name;
}

TEST(CronSchedule, is_refused_at_its_place) {
  const auto wrong = [](const std::string& yaml) {
    const Node node = parse_yaml(yaml, "job.yaml").value();
    return to_string(read_schedule(*node.find("schedule")).error());
  };
  EXPECT_EQ(wrong("schedule: { cron: 30 25 * * * }"),
            "job.yaml:1:19: error: schedule: '25' as its hour: a value is 0 to 23\n"
            "  hint: *, or numbers with commas and ranges: 0 to 23; */2 is every second one");
  EXPECT_EQ(wrong("schedule:\n  cron: 30 2 * * *\n  time_zone: Europe/Berlim"),
            "job.yaml:3:14: error: schedule: there is no time zone 'Europe/Berlim'\n"
            "  hint: did you mean 'Europe/Berlin' or 'Europe/Dublin' or 'Europe/Jersey'?");
  EXPECT_EQ(wrong("schedule:\n  cron: 30 2 * * *\n  timezone: UTC"),
            "job.yaml:3:3: error: schedule.timezone: unknown key\n  hint: did you mean 'time_zone'?");
  EXPECT_EQ(wrong("schedule: { cron: 30 2 * * *, start_within: 5s }"),
            "job.yaml:1:45: error: start_within: 5s: a run may start 1min to 31d late\n  hint: start_within: 1h");
  EXPECT_EQ(wrong("schedule: { time_zone: UTC }").substr(0, 47), "job.yaml:1:11: error: schedule: cron is missing");
}

}  // namespace
}  // namespace systole
