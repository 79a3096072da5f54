#include "operate/catalog_view/catalog_view.h"

#include <algorithm>

#include "ground/base/counted.h"

namespace systole {

Result<std::string> asked_accelerator(const CatalogView& view, const std::string& asked) {
  if (asked.empty()) return std::string();
  return TRY(view.catalog.find_accelerator(asked))->name;
}

std::string SourceNotes::note(const std::string& source, const std::string& date, std::int64_t old_after) {
  if (source.empty()) return "-";
  const bool old = is_old(date, today_, old_after);
  any_old_ = any_old_ || old;
  const std::string when = date.empty() ? "no date" : date;
  const std::string line = dates_below_ ? fmt::format("{}: {}", when, source) : source;
  auto found = std::ranges::find(sources_, line);
  if (found == sources_.end()) found = sources_.insert(sources_.end(), line);
  const std::string number = fmt::format("[{}]", found - sources_.begin() + 1);
  const char* const star = old ? "*" : "";
  return dates_below_ ? number + star : fmt::format("{}{} {}", when, star, number);
}

std::string SourceNotes::text(int width) const {
  std::string text;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    text += wrapped(fmt::format("[{}] {}", i + 1, sources_[i]), note_columns(width), "    ");
  if (any_old_)
    text += fmt::format("* old on {}: a price of more than {}, any other figure of more than {}, or no date\n", today_,
                        counted(kPriceIsOldAfter, "day"), kFactIsOldAfter);
  return text.empty() ? text : "\n" + text;
}

void set_dated(Node& node, const std::string& source, const std::string& date, const std::string& today,
               std::int64_t old_after) {
  const std::optional<std::int64_t> days = days_since(date, today);
  node.set("source", source).set("date", date);
  node.set("days_old", days ? Node(*days) : Node()).set("old", is_old(date, today, old_after));
}

std::string range_text(const std::optional<NumberRange>& range) {
  if (!range) return "-";
  return range->least == range->most ? fmt::format("{:g}", range->most)
                                     : fmt::format("{:g}-{:g}", range->least, range->most);
}

std::string gbit_text(const std::optional<BytesPerSecond>& rate) {
  return rate ? fmt::format("{:g}", rate->count() * 8 / 1e9) : "-";
}

}  // namespace systole
