#include "describe/spec/cron.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "ground/base/letter_case.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86'400;

struct FieldTraits {
  const char* name;
  int least, most;
  std::vector<std::string_view> names;  // of `least` and those behind it
};

const std::array<FieldTraits, 5>& fields() {
  static const std::array<FieldTraits, 5> kFields{
      {{"minute", 0, 59, {}},
       {"hour", 0, 23, {}},
       {"day of the month", 1, 31, {}},
       {"month", 1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
       {"day of the week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}}};
  return kFields;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros{{{"@hourly", "0 * * * *"},
                                                                                {"@daily", "0 0 * * *"},
                                                                                {"@midnight", "0 0 * * *"},
                                                                                {"@weekly", "0 0 * * 0"},
                                                                                {"@monthly", "0 0 1 * *"},
                                                                                {"@yearly", "0 0 1 1 *"},
                                                                                {"@annually", "0 0 1 1 *"}}};

std::vector<std::string_view> split(std::string_view text, std::string_view between, bool keep_empty) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
    if (keep_empty || end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<int> value_of(const FieldTraits& field, std::string_view text) {
  const std::string word = lower_case(text);
  for (std::size_t i = 0; i < field.names.size(); ++i)
    if (word == field.names[i]) return field.least + static_cast<int>(i);
  const std::optional<int> number = number_from<int>(text);
  return number && *number >= field.least && *number <= field.most ? number : std::nullopt;
}

std::string values_of(const FieldTraits& field) {
  const std::string numbers = fmt::format("{} to {}", field.least, field.most);
  if (field.names.empty()) return numbers;
  return fmt::format("{} or {} to {}", numbers, field.names.front(), field.names.back());
}

struct Range {
  int first = 0, last = 0, step = 1;
  bool star = false;
};

Result<Range> parse_range(const FieldTraits& field, std::string_view part) {
  const auto wrong = [&](std::string why) {
    return error(ErrorKind::invalid, "'{}' as its {}: {}", part, field.name, std::move(why))
        .hinted(fmt::format("*, or numbers with commas and ranges: {}; */2 is every second one", values_of(field)));
  };
  const std::size_t slash = part.find('/'), dash = part.find('-');
  const std::string_view body = part.substr(0, slash);
  Range range;
  if (body == "*") {
    range = {.first = field.least, .last = field.most == 7 ? 6 : field.most, .star = true};
  } else if (dash < slash) {
    const auto first = value_of(field, body.substr(0, dash)), last = value_of(field, body.substr(dash + 1));
    if (!first || !last) return wrong("a range is of two values, " + values_of(field));
    if (*first > *last) return wrong("the range ends before it begins");
    range = {.first = *first, .last = *last};
  } else {
    const auto value = value_of(field, body);
    if (!value) return wrong("a value is " + values_of(field));
    if (slash != part.npos)
      return wrong(fmt::format("a step is of * or a range: {}-{}{}", body, field.most, part.substr(slash)));
    range = {.first = *value, .last = *value};
  }
  if (slash == part.npos) return range;
  const auto step = number_from<int>(part.substr(slash + 1));
  if (!step || *step < 1 || *step > field.most) return wrong(fmt::format("a step is 1 to {}", field.most));
  range.step = *step;
  return range;
}

}  // namespace

Result<CronExpression::Field> CronExpression::parse_field(std::size_t index, std::string_view text) {
  const FieldTraits& traits = fields()[index];
  Field field;
  for (const std::string_view part : split(text, ",", true)) {
    const Range range = TRY(parse_range(traits, part));
    field.star |= range.star;
    for (int value = range.first; value <= range.last; value += range.step)
      field.values.set(static_cast<std::size_t>(index == 4 ? value % 7 : value));
  }
  if (field.star) {
    field.plain = text;
    if (text.find(',') == text.npos) return field;
    return error(ErrorKind::invalid, "'{}' as its {}: * is among others", text, traits.name)
        .hinted("* alone, or the list without it");
  }
  for (std::size_t value = 0; value < field.values.size(); ++value)
    if (field.values[value]) field.plain += fmt::format("{}{}", field.plain.empty() ? "" : ",", value);
  return field;
}

Result<CronExpression> CronExpression::parse(std::string_view text) {
  CronExpression cron;
  cron.text_ = text;
  std::vector<std::string_view> words = split(text, " \t", false);
  if (words.size() == 1 && words[0].starts_with('@')) {
    const auto macro = std::ranges::find(kMacros, words[0], [](const auto& each) { return each.first; });
    if (macro == kMacros.end())
      return error(ErrorKind::invalid, "'{}' is no schedule", words[0])
          .hinted("@hourly, @daily, @weekly, @monthly, @yearly, or five fields: 30 2 * * mon-fri");
    words = split(macro->second, " ", false);
  }
  if (words.size() != 5)
    return error(ErrorKind::invalid, "'{}' has {} of the five fields", text, words.size())
        .hinted("minute, hour, day of the month, month, day of the week: 30 2 * * mon-fri is 2:30 on workdays");
  const std::array<Field*, 5> parts{&cron.minute_, &cron.hour_, &cron.day_, &cron.month_, &cron.weekday_};
  for (std::size_t i = 0; i < parts.size(); ++i) *parts[i] = TRY(parse_field(i, words[i]));
  TRY(cron.check_days());
  return cron;
}

Status CronExpression::check_days() const {
  const auto is_every = [](const Field& field) { return field.plain == "*"; };
  for (const auto& [one, other] : {std::pair(&day_, &weekday_), std::pair(&weekday_, &day_)})
    if (one->star && !is_every(*one) && !is_every(*other))
      return error(ErrorKind::invalid, "'{}' beside '{}': programs differ in which days these are", day_.plain,
                   weekday_.plain)
          .hinted("one of the two days *, or both without *");
  if (!is_every(weekday_)) return {};
  for (std::size_t month = 1; month <= 12; ++month) {
    const std::size_t most = month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
    for (std::size_t day = 1; day <= most; ++day)
      if (month_.values[month] && day_.values[day]) return {};
  }
  return error(ErrorKind::invalid, "'{}' never comes: no such month has such a day", text_)
      .hinted("the fields are minute, hour, day of the month, month, day of the week");
}

std::string CronExpression::plain() const {
  return fmt::format("{} {} {} {} {}", minute_.plain, hour_.plain, day_.plain, month_.plain, weekday_.plain);
}

std::vector<std::string> CronExpression::on_calendar(const TimeZone& zone) const {
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto list = [](const Field& field, const FieldTraits& traits) {
    std::string text;
    for (int value = traits.least; value <= traits.most; ++value)
      if (field.values[static_cast<std::size_t>(value)]) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
    return field.plain == "*" ? std::string("*") : text;
  };
  std::string weekdays;
  for (std::size_t day = 0; day < kDays.size(); ++day)
    if (weekday_.values[day]) weekdays += fmt::format("{}{}", weekdays.empty() ? "" : ",", kDays[day]);
  const auto line = [&](bool by_weekday, const std::string& day) {
    return fmt::format("{}*-{}-{} {}:{}:00 {}", by_weekday ? weekdays + " " : "", list(month_, fields()[3]), day,
                       list(hour_, fields()[1]), list(minute_, fields()[0]), zone.name());
  };
  const bool by_weekday = weekday_.plain != "*";
  if (by_weekday && !weekday_.star && !day_.star) return {line(false, list(day_, fields()[2])), line(true, "*")};
  return {line(by_weekday, list(day_, fields()[2]))};
}

bool CronExpression::is_due_day(std::int64_t local) const {
  const std::chrono::sys_days days{std::chrono::days(local / kDay - (local % kDay < 0 ? 1 : 0))};
  const std::chrono::year_month_day date(days);
  if (!month_.values[static_cast<unsigned>(date.month())]) return false;
  const bool day = day_.values[static_cast<unsigned>(date.day())];
  const bool weekday = weekday_.values[std::chrono::weekday(days).c_encoding()];
  return day_.star || weekday_.star ? day && weekday : day || weekday;
}

bool CronExpression::is_due(std::int64_t local) const {
  const std::int64_t second = ((local % kDay) + kDay) % kDay;
  return minute_.values[static_cast<std::size_t>(second % kHour / kMinute)] &&
         hour_.values[static_cast<std::size_t>(second / kHour)] && is_due_day(local);
}

namespace {

std::int64_t minute_of(std::int64_t time) { return time - ((time % kMinute) + kMinute) % kMinute; }

// Whether this local time has been before: clocks were set back since.
bool comes_again(const TimeZone& zone, std::int64_t time) {
  for (auto change = zone.next_change(time - kDay); change && *change <= time; change = zone.next_change(*change))
    if (time < *change + zone.offset(*change - 1) - zone.offset(*change)) return true;
  return false;
}

}  // namespace

// Hour by hour where the hour or the day is not due, and minute by minute where they are; a change of the clock is never
// stepped over. February 29 is at most eight years away.
std::int64_t CronExpression::next(const TimeZone& zone, std::int64_t after) const {
  std::int64_t time = minute_of(after) + kMinute;
  const std::int64_t latest = time + 9 * 366 * kDay;
  std::optional<std::int64_t> change = zone.next_change(time - 1);
  for (;;) {
    CHECK(time < latest, "'{}' is not due in {}", text_, zone.name());
    const std::int64_t local = time + zone.offset(time);
    if (change && time >= *change) {
      const std::int64_t skipped = zone.offset(*change) - zone.offset(*change - 1);
      for (std::int64_t each = local - skipped; !hour_.star && each < local; each += kMinute)
        if (is_due(each)) return time;
      change = zone.next_change(time);
    }
    if (is_due(local) && (hour_.star || !comes_again(zone, time))) return time;
    const std::int64_t in_hour = ((local % kHour) + kHour) % kHour;
    const bool is_hour = hour_.values[static_cast<std::size_t>(((local % kDay) + kDay) % kDay / kHour)];
    time += is_hour && is_due_day(local) ? kMinute : kHour - in_hour / kMinute * kMinute;
    if (change && *change < time) time = minute_of(*change + kMinute - 1);
  }
}

}  // namespace systole
