#pragma once
// The known errors of predictions by software stack (stack.h), accelerator and kind of work, against measurements that
// others published. data/perf/known_errors.csv has them; `systole backtest ROWS --save-errors FILE` writes it. A
// prediction is printed with the error of its kind, or of the nearest kind with enough rows, and names that kind.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

constexpr std::string_view kUnseenStack = "unseen";  // each row is judged with its stack held out
constexpr std::string_view kAnyAccelerator = "any";
constexpr std::int64_t kLeastKnownRows = 5;  // a mean of fewer rows says little

// |predicted / measured - 1| over published rows without a defect. Each row is predicted by a profile that was fitted
// without the row's source, so the figures hold for a job that nobody has measured.
struct KnownError {
  std::string stack;        // or kUnseenStack
  std::string work;         // "dense", "moe", "fp8": mixtures of experts are moe in whatever type
  std::string accelerator;  // or kAnyAccelerator
  std::string of;           // "step_time", "memory"
  std::int64_t rows = 0;
  double mean = 0, p90 = 0;
  std::optional<double> fitted_mean;  // if the row's source is fitted too; empty for kUnseenStack
  bool operator==(const KnownError&) const = default;
};

// Errors: invalid, with place: what CsvTable refuses, a missing column, a bad number, a repeated kind.
Result<std::vector<KnownError>> read_known_errors(std::string text, const std::string& filename);
std::string to_csv(std::span<const KnownError> errors);
// The errors in data/perf/known_errors.csv when Systole was built.
const std::vector<KnownError>& builtin_known_errors();

// The error of the kind itself; else of the stack and work on all accelerators; else of unseen stacks on this
// accelerator; else of unseen stacks on all. Null if none of these has kLeastKnownRows rows.
const KnownError* find_known_error(std::span<const KnownError> errors, std::string_view stack, std::string_view work,
                                   std::string_view accelerator, std::string_view of);

}  // namespace systole
