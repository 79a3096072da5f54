#include "execute/serve/batch/dated_runs.h"

#include <algorithm>
#include <set>

namespace systole {

namespace {

constexpr Bytes kMostDone{4096};  // of a journal that keeps no rows

}  // namespace

Result<bool> DatedRuns::is_finished(std::int64_t due) const {
  const std::string output = schedule_.name_of(due) + "/" + file_, journal = output + ".journal/rows";
  if (!TRY(folder_.exists(journal))) return folder_.exists(output);
  if (TRY(folder_.size(journal)) > kMostDone) return false;
  const std::string text = TRY(read_text(folder_, journal));
  const std::size_t second = text.find('\n') + 1;  // behind a checksum of eight digits, its first word
  return text.substr(std::min(text.size(), second + 8)).starts_with(" done ");
}

Result<std::optional<std::int64_t>> DatedRuns::cut_short() const {
  std::optional<std::int64_t> newest;
  for (std::string name : TRY(folder_.list(""))) {
    if (!name.ends_with('/')) continue;
    name.pop_back();
    newest = std::max(newest, schedule_.due_of(name));
  }
  if (!newest || TRY(is_finished(*newest))) return std::optional<std::int64_t>();
  return newest;
}

Result<std::optional<std::int64_t>> DatedRuns::due(std::int64_t now) const {
  const std::optional<std::int64_t> last = schedule_.latest(now);
  if (!last || TRY(is_finished(*last))) return std::optional<std::int64_t>();
  return last;
}

Status follow_schedule(const DatedRuns& runs, const DatedRunner& runner, Clock& clock) {
  std::set<std::int64_t> failed;
  const auto untried = [&](std::optional<std::int64_t> due) {
    return due && !failed.contains(*due) ? due : std::nullopt;
  };
  std::optional<std::int64_t> told;
  for (;;) {
    const std::optional<std::int64_t> begun = untried(TRY(runs.cut_short()));
    const std::optional<std::int64_t> due = begun ? begun : untried(TRY(runs.due(clock.unix_time())));
    if (due) {
      const Result<bool> ran = runner.run(*due, begun.has_value());
      if (ran.ok() && !*ran) return {};
      if (!ran.ok()) {
        failed.insert(*due);
        runner.failed(*due, ran.error());
      }
      continue;
    }
    const std::int64_t next = runs.schedule().next(clock.unix_time());
    if (told != next) runner.waits(next);
    told = next;
    while (clock.unix_time() < next) {
      if (runner.stops()) return {};
      // A second at a time: the calendar may be set, and a machine may sleep meanwhile.
      clock.sleep(std::min(Seconds(1.0), Seconds(static_cast<double>(next - clock.unix_time()))));
    }
  }
}

}  // namespace systole
