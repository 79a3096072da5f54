#pragma once
// How far off predictions of a kind have been: of a software stack (stack.h), on an accelerator, of a kind of work.
// What was published that others measured is the judge; data/perf/known_errors.csv has the figures, which `systole
// backtest ROWS --save-errors FILE` writes. A prediction is printed with the error of its kind, or with that of the
// nearest kind of which enough is known, and says which.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

constexpr std::string_view kUnseenStack = "unseen";  // its rows are judged as if their stack had never been seen
constexpr std::string_view kAnyAccelerator = "any";
constexpr std::int64_t kLeastKnownRows = 5;  // of fewer rows a mean says little

// |predicted / measured - 1| over published rows that have no defect. What a row is predicted by was fitted without its
// source, so that the figures are those of a job that nobody has measured.
struct KnownError {
  std::string stack;        // or kUnseenStack
  std::string work;         // "dense", "moe", "fp8": mixtures of experts are moe in whatever type
  std::string accelerator;  // or kAnyAccelerator
  std::string of;           // "step_time", "memory"
  std::int64_t rows = 0;
  double mean = 0, p90 = 0;
  std::optional<double> fitted_mean;  // where its source was fitted too; nothing for kUnseenStack
  bool operator==(const KnownError&) const = default;
};

// Errors: invalid, with place: what CsvTable refuses, a column missing, no number, a kind that comes twice.
Result<std::vector<KnownError>> read_known_errors(std::string text, const std::string& filename);
std::string to_csv(std::span<const KnownError> errors);
// Those in data/perf/known_errors.csv when Systole was built.
const std::vector<KnownError>& builtin_known_errors();

// What is known of the kind itself; else of the stack and work on all accelerators; else of stacks never seen on this
// accelerator; else on all. Nothing: there are fewer rows of such work than kLeastKnownRows.
const KnownError* find_known_error(std::span<const KnownError> errors, std::string_view stack, std::string_view work,
                                   std::string_view accelerator, std::string_view of);

}  // namespace systole
