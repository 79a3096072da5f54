#include "predict/perf/known_errors.h"

#include <algorithm>
#include <tuple>

#include "ground/base/csv.h"
#include "ground/base/number_from.h"

namespace systole {

extern const char* const kBuiltinKnownErrors;  // data/perf/known_errors.csv, made when Systole is built

namespace {

constexpr std::string_view kColumns[] = {"stack", "work", "accelerator", "of", "rows", "mean", "p90", "fitted_mean"};

auto kind_of(const KnownError& e) { return std::tie(e.stack, e.work, e.accelerator, e.of); }

Result<double> number_at(const CsvTable& table, std::size_t row, std::size_t column) {
  const std::string_view text = table.at(row, column);
  if (const std::optional<double> value = number_from<double>(text); value && *value >= 0) return *value;
  return error(ErrorKind::invalid, "'{}' is no {}", text, kColumns[column]).at(table.where(row, column));
}

}  // namespace

Result<std::vector<KnownError>> read_known_errors(std::string text, const std::string& filename) {
  const CsvTable table = TRY(CsvTable::read(std::move(text), filename));
  TRY(table.expect_columns(kColumns, {}));
  std::size_t at[std::size(kColumns)];
  for (std::size_t c = 0; c < std::size(kColumns); ++c) at[c] = table.column(kColumns[c]);
  std::vector<KnownError> errors;
  for (std::size_t r = 0; r < table.num_rows(); ++r) {
    KnownError one;
    one.stack = table.at(r, at[0]);
    one.work = table.at(r, at[1]);
    one.accelerator = table.at(r, at[2]);
    one.of = table.at(r, at[3]);
    one.rows = static_cast<std::int64_t>(TRY(number_at(table, r, at[4])));
    one.mean = TRY(number_at(table, r, at[5]));
    one.p90 = TRY(number_at(table, r, at[6]));
    if (!table.at(r, at[7]).empty()) one.fitted_mean = TRY(number_at(table, r, at[7]));
    if (std::ranges::any_of(errors, [&](const KnownError& e) { return kind_of(e) == kind_of(one); }))
      return error(ErrorKind::invalid, "{} of {} {} on {} comes twice", one.of, one.work, one.stack, one.accelerator)
          .at(table.where(r, at[0]));
    errors.push_back(std::move(one));
  }
  return errors;
}

std::string to_csv(std::span<const KnownError> errors) {
  std::string text;
  for (const std::string_view column : kColumns) text += (text.empty() ? "" : ",") + std::string(column);
  text += "\n";
  for (const KnownError& e : errors)
    text += fmt::format("{},{},{},{},{},{:.4f},{:.4f},{}\n", e.stack, e.work, e.accelerator, e.of, e.rows, e.mean,
                        e.p90, e.fitted_mean ? fmt::format("{:.4f}", *e.fitted_mean) : "");
  return text;
}

const std::vector<KnownError>& builtin_known_errors() {
  static const std::vector<KnownError> errors =
      read_known_errors(kBuiltinKnownErrors, "data/perf/known_errors.csv").value();
  return errors;
}

const KnownError* find_known_error(std::span<const KnownError> errors, std::string_view stack, std::string_view work,
                                   std::string_view accelerator, std::string_view of) {
  const std::pair<std::string_view, std::string_view> nearest[] = {
      {stack, accelerator}, {stack, kAnyAccelerator}, {kUnseenStack, accelerator}, {kUnseenStack, kAnyAccelerator}};
  for (const auto& [of_stack, on] : nearest)
    for (const KnownError& e : errors)
      if (e.stack == of_stack && e.work == work && e.accelerator == on && e.of == of && e.rows >= kLeastKnownRows)
        return &e;
  return nullptr;
}

}  // namespace systole
