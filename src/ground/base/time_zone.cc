#include "ground/base/time_zone.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "ground/base/files.h"
#include "ground/base/nearest.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

constexpr std::int64_t kDay = 86'400;

// Numbers of a TZif file, most significant byte first.
class Bytes8536 {
 public:
  explicit Bytes8536(std::string_view bytes) : bytes_(bytes) {}

  bool has(std::size_t count) const { return bytes_.size() >= count; }
  // REQUIRES: has them.
  std::string_view take(std::size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::int64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (const char byte : take(width)) value = value << 8 | static_cast<unsigned char>(byte);
    return width == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value)) : static_cast<std::int64_t>(value);
  }

 private:
  std::string_view bytes_;
};

struct Counts {
  std::size_t utc = 0, standard = 0, leap = 0, times = 0, types = 0, letters = 0;

  std::size_t bytes(std::size_t width) const {  // of the block behind the header
    return times * (width + 1) + types * 6 + letters + leap * (width + 4) + standard + utc;
  }
};

std::optional<Counts> take_header(Bytes8536& bytes, char& version) {
  if (!bytes.has(44) || bytes.take(4) != "TZif") return std::nullopt;
  version = bytes.take(1)[0];
  bytes.take(15);
  Counts counts;
  for (std::size_t* each :
       {&counts.utc, &counts.standard, &counts.leap, &counts.times, &counts.types, &counts.letters}) {
    const std::int64_t count = bytes.number(4);
    if (count < 0) return std::nullopt;
    *each = static_cast<std::size_t>(count);
  }
  return counts;
}

int year_of(std::int64_t time) {
  const std::chrono::sys_days day{std::chrono::days(time / kDay - (time % kDay < 0 ? 1 : 0))};
  return static_cast<int>(std::chrono::year_month_day(day).year());
}

std::int64_t seconds_of(std::chrono::sys_days day) { return day.time_since_epoch().count() * kDay; }

}  // namespace

// Reads "CET-1CEST,M3.5.0,M10.5.0/3".
class TimeZone::RuleText {
 public:
  explicit RuleText(std::string_view text) : text_(text) {}

  std::optional<Rule> read() {
    Rule rule;
    if (!name() || !time(rule.standard)) return std::nullopt;
    rule.standard = -rule.standard;
    if (text_.empty()) return rule;
    if (!name()) return std::nullopt;
    rule.summer = -rule.standard - 3600;
    if (!text_.empty() && text_[0] != ',' && !time(rule.summer)) return std::nullopt;
    rule.summer = -rule.summer;
    std::array<Day, 2> days;
    for (Day& day : days)
      if (!take(',') || !this->day(day)) return std::nullopt;
    rule.days = days;
    return text_.empty() ? std::optional(rule) : std::nullopt;
  }

 private:
  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    const bool quoted = take('<');
    const auto ends = [&](char c) { return quoted ? c == '>' : !((c | 32) >= 'a' && (c | 32) <= 'z'); };
    const auto end = std::ranges::find_if(text_, ends);
    const auto length = static_cast<std::size_t>(end - text_.begin());
    if (length == 0) return false;
    text_.remove_prefix(length);
    return !quoted || take('>');
  }
  template <typename Number>
  bool number(Number& value) {
    if (text_.empty() || text_[0] < '0' || text_[0] > '9') return false;
    for (value = 0; !text_.empty() && text_[0] >= '0' && text_[0] <= '9' && value < 1000; text_.remove_prefix(1))
      value = value * 10 + (text_[0] - '0');
    return true;
  }
  bool time(std::int64_t& seconds) {  // [+-]h[:m[:s]]
    const bool negative = take('-');
    if (!negative) take('+');
    std::int64_t hours = 0, minutes = 0, rest = 0;
    if (!number(hours) || (take(':') && (!number(minutes) || (take(':') && !number(rest))))) return false;
    seconds = (hours * 60 + minutes) * 60 + rest;
    if (negative) seconds = -seconds;
    return true;
  }
  bool day(Day& day) {
    day.form = take('M') ? 'M' : take('J') ? 'J' : 'n';
    const bool read = day.form == 'M'
                          ? number(day.month) && take('.') && number(day.week) && take('.') && number(day.day)
                          : number(day.day);
    const bool fits =
        day.form != 'M' || (day.month >= 1 && day.month <= 12 && day.week >= 1 && day.week <= 5 && day.day <= 6);
    return read && fits && (!take('/') || time(day.seconds));
  }

  std::string_view text_;
};

std::int64_t TimeZone::midnight_of(const Day& day, int year) {
  using namespace std::chrono;
  const std::chrono::year y(year);
  if (day.form == 'M') {
    const weekday wanted(static_cast<unsigned>(day.day));
    const month_weekday_last last(month(static_cast<unsigned>(day.month)), wanted[std::chrono::last]);
    if (day.week == 5) return seconds_of(sys_days(y / last));
    return seconds_of(sys_days(y / month(static_cast<unsigned>(day.month)) / wanted[static_cast<unsigned>(day.week)]));
  }
  const sys_days first(y / January / 1);
  if (day.form == 'n') return seconds_of(first + days(day.day));
  return seconds_of(first + days(day.day - 1 + (y.is_leap() && day.day >= 60 ? 1 : 0)));  // February 29 never counts
}

// Those of the years around.
std::vector<TimeZone::Change> TimeZone::changes_by_rule(std::int64_t time) const {
  std::vector<Change> changes;
  const auto& [begins, ends] = *rule_->days;
  const int year = year_of(time);
  for (int y = year - 1; y <= year + 2; ++y) {
    changes.push_back({midnight_of(begins, y) + begins.seconds - rule_->standard, rule_->summer});
    changes.push_back({midnight_of(ends, y) + ends.seconds - rule_->summer, rule_->standard});
  }
  std::ranges::stable_sort(changes, std::ranges::less(), &Change::time);
  return changes;
}

std::int64_t TimeZone::offset(std::int64_t time) const {
  const auto behind = std::ranges::upper_bound(changes_, time, std::ranges::less(), &Change::time);
  if (behind != changes_.end() || !rule_) return behind == changes_.begin() ? first_ : std::prev(behind)->offset;
  if (!rule_->days) return rule_->standard;
  const std::vector<Change> changes = changes_by_rule(time);
  return std::prev(std::ranges::upper_bound(changes, time, std::ranges::less(), &Change::time))->offset;
}

std::optional<std::int64_t> TimeZone::next_change(std::int64_t time) const {
  const std::int64_t now = offset(time);
  for (auto next = std::ranges::upper_bound(changes_, time, std::ranges::less(), &Change::time); next != changes_.end();
       ++next)
    if (offset(next->time) != now) return next->time;
  if (!rule_ || !rule_->days) return std::nullopt;
  const std::int64_t from = changes_.empty() ? time : std::max(time, changes_.back().time);
  for (const Change& next : changes_by_rule(from))
    if (next.time > from && next.offset != now) return next.time;
  return std::nullopt;
}

Result<TimeZone> TimeZone::parse(std::string name, std::string_view text) {
  const auto wrong = [&] { return error(ErrorKind::corrupt, "the file of time zone '{}' is no TZif file", name); };
  Bytes8536 bytes(text);
  char version = 0;
  std::size_t width = 4;
  std::optional<Counts> counts = take_header(bytes, version);
  if (counts && version >= '2') {  // the same again in 64 bits
    if (!bytes.has(counts->bytes(4))) return wrong();
    bytes.take(counts->bytes(4));
    counts = take_header(bytes, version);
    width = 8;
  }
  if (!counts || counts->types == 0 || !bytes.has(counts->bytes(width))) return wrong();
  TimeZone zone;
  zone.name_ = std::move(name);
  zone.changes_.resize(counts->times);
  for (Change& change : zone.changes_) change.time = bytes.number(width);
  const std::string_view kinds = bytes.take(counts->times);
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < counts->types; ++i) {
    offsets.push_back(bytes.number(4));
    bytes.take(2);
  }
  zone.first_ = offsets[0];
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto kind = static_cast<unsigned char>(kinds[i]);
    if (kind >= offsets.size()) return wrong();
    zone.changes_[i].offset = offsets[kind];
  }
  if (!std::ranges::is_sorted(zone.changes_, std::ranges::less(), &Change::time)) return wrong();
  if (version < '2') return zone;
  bytes.take(counts->bytes(width) - counts->times * (width + 1) - counts->types * 6);
  std::string footer;
  while (bytes.has(1)) footer += bytes.take(1);
  if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') return wrong();
  if (footer.size() == 2) return zone;
  zone.rule_ = RuleText(std::string_view(footer).substr(1, footer.size() - 2)).read();
  if (!zone.rule_) return wrong();
  return zone;
}

Result<TimeZone> TimeZone::named(const std::string& name, const std::string& folder) {
  if (name == "UTC") return TimeZone();
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' || c == '/';
  };
  const bool is_name = !name.empty() && name.front() != '/' && std::ranges::all_of(name, is_letter);
  const std::string path = folder + "/" + name;
  if (is_name && is_file(path)) return parse(name, TRY(read_text_file(path)));
  const Result<std::vector<std::filesystem::path>> files = files_below(folder);
  if (!files.ok() || files->empty())
    return error(ErrorKind::not_found, "this system has no time zones: there is no {}", folder)
        .hinted("apt install tzdata; or UTC");
  std::vector<std::string> known{"UTC"};
  for (const std::filesystem::path& file : *files) {
    const std::string each = file.lexically_relative(folder).string();
    if (each.find('/') != each.npos && !each.starts_with("posix/") && !each.starts_with("right/"))
      known.push_back(each);
  }
  return error(ErrorKind::invalid, "there is no time zone '{}'", name).hinted(nearest_hint(name, known));
}

}  // namespace systole
