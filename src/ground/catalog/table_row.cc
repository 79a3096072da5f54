#include "ground/catalog/table_row.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ground/base/errors.h"
#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = number_from<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string> names_of(const TableColumns& columns) {
  std::vector<std::string> names(columns.required.begin(), columns.required.end());
  names.insert(names.end(), columns.optional.begin(), columns.optional.end());
  return names;
}

}  // namespace

TableRow::TableRow(const Node& map, const TableColumns& columns, std::vector<Error>& errors)
    : map_(&map), errors_(errors) {
  if (!map.is_map()) {
    errors_.push_back(map.wrong(fmt::format("a map: an entry of {}", columns.table)));
    return;
  }
  const std::vector<std::string> known = names_of(columns);
  for (const Node::Entry& entry : map.entries()) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    errors_.push_back(error(ErrorKind::invalid, "{} have no '{}'", columns.table, entry.key)
                          .at(entry.where())
                          .hinted(nearest_hint(entry.key, known)));
  }
  for (const std::string_view key : columns.required)
    if (map.find(key) == nullptr) errors_.push_back(error(ErrorKind::invalid, "'{}' is missing", key).at(map.where()));
}

std::string_view TableRow::text(std::string_view key) const {
  if (table_ != nullptr) {
    const std::size_t column = table_->column(key);
    return column == CsvTable::kNoColumn ? std::string_view() : table_->at(row_, column);
  }
  const Node* value = node(key);
  return value == nullptr || !value->is_scalar() || value->is_null() ? std::string_view()
                                                                     : std::string_view(value->text());
}

Where TableRow::where(std::string_view key) const {
  if (table_ != nullptr) {
    const std::size_t column = table_->column(key);
    return table_->where(row_, column == CsvTable::kNoColumn ? 0 : column);
  }
  const Node* value = node(key);
  return value == nullptr ? map_->where() : value->where();
}

std::string TableRow::name(std::string_view key) {
  // For YAML an absent key was reported already.
  if (!has(key) && (table_ != nullptr || node(key) != nullptr))
    wrong(key, error(ErrorKind::invalid, "'{}' is empty", key));
  return string(key);
}

std::optional<double> TableRow::number(std::string_view key) {
  if (!has(key)) return std::nullopt;
  const std::optional<double> value = parse_number(text(key));
  if (!value)
    wrong(key, error(ErrorKind::invalid, "{}: '{}' is no number", key, text(key)));
  else if (*value < 0)
    wrong(key, error(ErrorKind::invalid, "{} is negative: {}", key, text(key)));
  else
    return value;
  return std::nullopt;
}

std::optional<std::int64_t> TableRow::count(std::string_view key) {
  const std::optional<double> value = number(key);
  if (!value) return std::nullopt;
  if (*value == std::floor(*value) && *value < 1e15) return static_cast<std::int64_t>(*value);
  wrong(key, error(ErrorKind::invalid, "{}: '{}' is no whole number", key, text(key)));
  return std::nullopt;
}

std::optional<NumberRange> TableRow::range(std::string_view key) {
  const std::string_view both = text(key);
  if (both.empty()) return std::nullopt;
  const std::size_t dash = both.find('-');
  const std::optional<double> least = parse_number(both.substr(0, dash));
  const std::optional<double> most = dash == both.npos ? least : parse_number(both.substr(dash + 1));
  if (least && most && *least >= 0 && *least <= *most) return NumberRange{*least, *most};
  wrong(key, error(ErrorKind::invalid, "{}: '{}' is neither a number nor a range", key, both).hinted("4, or 1-48"));
  return std::nullopt;
}

std::vector<std::string> TableRow::list(std::string_view key) {
  std::vector<std::string> items;
  if (const Node* value = node(key); value != nullptr && value->is_sequence()) {
    for (const Node& item : value->items()) {
      if (item.is_scalar() && !item.text().empty())
        items.push_back(item.text());
      else
        errors_.push_back(item.wrong("text"));
    }
    return items;
  }
  for (std::string_view rest = text(key); !rest.empty();) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    items.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return items;
}

std::size_t TableRow::one_of(std::string_view key, std::span<const std::string_view> names) {
  if (!has(key)) return 0;
  const auto found = std::ranges::find(names, text(key));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> all(names.begin(), names.end());
  wrong(key, error(ErrorKind::invalid, "{}: '{}' is none of {}", key, text(key), fmt::join(all, ", "))
                 .hinted(nearest_hint(text(key), all)));
  return 0;
}

bool TableRow::yes(std::string_view key) {
  constexpr std::string_view kAnswers[] = {"no", "yes"};
  return one_of(key, kAnswers) == 1;
}

Dated TableRow::dated(std::string_view key) {
  Dated dated{name("source"), string("date"), string("confidence"), where(key), own_};
  if (own_ && dated.date.empty())
    name("date");
  else if (!dated.date.empty() && !is_partial_date(dated.date))
    wrong("date", error(ErrorKind::invalid, "'{}' is no date", dated.date).hinted("YYYY-MM-DD"));
  else
    return dated;
  dated.date.clear();
  return dated;
}

Status first_of(std::vector<Error> errors) {
  if (errors.empty()) return {};
  return together(std::move(errors));
}

}  // namespace systole
