#include "predict/plan/feed_plan.h"

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"

namespace systole {
namespace {

constexpr double kSpare = 1.25;         // rate over need, for a number of threads to be enough
constexpr double kWorthAThread = 1.03;  // a thread more that gives less is not taken
constexpr double kGrows = 1.5;          // of twice the threads: more of them may help
constexpr std::int64_t kUsualQueue = 3, kDeepest = 8;

std::vector<FeedSpeed::Rate> measured(const FeedSpeed& speed, bool cold) {
  std::vector<FeedSpeed::Rate> rates;
  std::ranges::copy_if(speed.rates, std::back_inserter(rates), [&](const auto& rate) { return rate.cold == cold; });
  std::ranges::sort(rates, {}, &FeedSpeed::Rate::readers);
  return rates;
}

// The fewest threads that are enough; else those that give the most.
std::int64_t enough_readers(const FeedSpeed& speed, bool cold, double needed) {
  FeedSpeed::Rate best{1, 0, cold};
  for (const FeedSpeed::Rate& rate : measured(speed, cold)) {
    if (rate.rows_per_second >= needed * kSpare) return rate.readers;
    if (rate.rows_per_second > best.rows_per_second * kWorthAThread) best = rate;
  }
  return best.readers;
}

Seconds wait_of(const FeedNeed& need, double rate) {
  return std::max(Seconds(), Seconds(static_cast<double>(need.rows) / rate) - *need.step);
}

std::string rate_text(double rows, double row_bytes) {
  return fmt::format("{} rows/s, {}", rows < 100 ? fmt::format("{:.3g}", rows) : with_commas(std::llround(rows)),
                     to_string(BytesPerSecond(rows * row_bytes)));
}

// The edit that helps a run that waits.
std::string remedy_of(const PlannedFeed& feed, const FeedSpeed& speed, bool cold) {
  const double needed = feed.rows_per_second;
  const std::int64_t most = enough_readers(speed, cold, needed);
  if (const auto rate = rows_per_second(speed, most, cold); most > feed.readers && *rate > feed.given * kWorthAThread)
    return fmt::format("data.readers: {} gives {:.3g} x as many rows", most, *rate / feed.given);
  const std::vector<FeedSpeed::Rate> rates = measured(speed, cold);
  if (rates.size() > 1 && rates.back().readers == feed.readers &&
      rates.back().rows_per_second > rates[rates.size() - 2].rows_per_second * kGrows)
    return fmt::format("data.readers: {} may give more: the rate still grows with threads", 2 * feed.readers);
  const auto warm = rows_per_second(speed, feed.readers, false);
  if (cold && warm && *warm >= needed)
    return fmt::format(
        "data.folder on storage that gives {} in small reads: a local SSD, or a folder in memory, from "
        "which it would be {} rows/s",
        to_string(BytesPerSecond(needed * feed.row_bytes)), with_commas(std::llround(*warm)));
  return "resources.threads one lower leaves the reader a core; a larger model takes fewer rows a second";
}

}  // namespace

std::optional<double> rows_per_second(const FeedSpeed& speed, std::int64_t readers, bool cold) {
  const std::vector<FeedSpeed::Rate> rates = measured(speed, cold);
  if (rates.empty()) return std::nullopt;
  const auto above = std::ranges::find_if(rates, [&](const FeedSpeed::Rate& rate) { return rate.readers >= readers; });
  if (above == rates.end()) return rates.back().rows_per_second;
  if (above == rates.begin() || above->readers == readers) return above->rows_per_second;
  const FeedSpeed::Rate& below = *std::prev(above);
  const double share =
      static_cast<double>(readers - below.readers) / static_cast<double>(above->readers - below.readers);
  return below.rows_per_second + share * (above->rows_per_second - below.rows_per_second);
}

PlannedFeed plan_feed(const FeedNeed& need, const std::optional<FeedSpeed>& speed) {
  PlannedFeed feed;
  feed.rows = need.rows;
  feed.row_bytes = need.row_bytes;
  feed.readers = need.readers.value_or(1);
  feed.queue = need.queue.value_or(std::max(kUsualQueue, feed.readers + 2));
  if (need.step && *need.step > Seconds()) feed.rows_per_second = static_cast<double>(need.rows) / need.step->count();
  if (!speed || speed->rates.empty()) {
    feed.unknown = "not measured: systole data probe --save measures it";
    return feed;
  }
  feed.source = speed->source;
  const bool cold = !measured(*speed, true).empty();
  if (feed.rows_per_second == 0) {
    feed.given = rows_per_second(*speed, feed.readers, cold).value();
    feed.unknown = "the time of a step is unknown";
    return feed;
  }
  feed.readers = need.readers.value_or(enough_readers(*speed, cold, feed.rows_per_second));
  feed.given = rows_per_second(*speed, feed.readers, cold).value();
  feed.processor_share = speed->processor.count() * std::min(feed.rows_per_second, feed.given);
  const double hiccup = std::min(static_cast<double>(kDeepest), speed->hiccup / *need.step);
  feed.queue = need.queue.value_or(
      std::max(kUsualQueue, feed.readers + 2 + static_cast<std::int64_t>(std::floor(std::max(0.0, hiccup)))));
  const Seconds first = wait_of(need, feed.given);
  const double later_rate = rows_per_second(*speed, feed.readers, false).value_or(feed.given);
  const Seconds later = need.stays_in_memory ? wait_of(need, later_rate) : first;
  const double share = need.steps > need.epoch_steps && need.epoch_steps > 0 ? need.epoch_steps / need.steps : 1.0;
  feed.wait = first * share + later * (1 - share);
  if (feed.wait > Seconds()) feed.remedy = remedy_of(feed, *speed, cold);
  return feed;
}

std::string feed_text(const PlannedFeed& feed, Seconds step) {
  const std::string a_step = counted(feed.rows, "row") + " a step";
  const std::string need = feed.rows_per_second > 0
                               ? fmt::format("{}, {}", a_step, rate_text(feed.rows_per_second, feed.row_bytes))
                               : a_step;
  if (feed.given == 0) return fmt::format("feed: {} of shards; what the reader gives is {}\n", need, *feed.unknown);
  const std::string by = counted(feed.readers, "thread");
  const std::string gives =
      fmt::format("{} give{} {}", by, feed.readers == 1 ? "s" : "", rate_text(feed.given, feed.row_bytes));
  if (feed.unknown) return fmt::format("feed: {}; {} ({}); {}\n", a_step, gives, feed.source, *feed.unknown);
  if (feed.wait == Seconds())
    return fmt::format("feed: {}; {}, {:.3g} x as many, at {:.1f}% of a core; a queue of {} ({})\n", need, gives,
                       feed.given / feed.rows_per_second, 100 * feed.processor_share, feed.queue, feed.source);
  return fmt::format("feed: STARVES: {} would be taken; {} ({}): {} of a step's {} waits for rows\n", need, gives,
                     feed.source, to_string(feed.wait), to_string(step));
}

}  // namespace systole
