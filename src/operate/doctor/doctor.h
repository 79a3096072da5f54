#pragma once
// Judges a machine for running workloads: each check is ok, a warning or a failure, with a remedy unless it is ok.
// Rules over facts only; facts.h collects them.

#include <optional>
#include <string>
#include <vector>

#include "operate/doctor/facts.h"

namespace systole {

enum class Verdict { ok, warn, fail };
const char* name_of(Verdict verdict);

struct Finding {
  std::string name;  // "memory": stable, for scripts
  Verdict verdict = Verdict::ok;
  std::string text, hint;  // the hint is empty only for ok
};

struct Examined {
  MachineFacts machine;
  std::vector<LibraryFacts> libraries;
  CalibrationFacts calibration;
  std::optional<std::int64_t> threads;  // that a workload requests
  std::string today;                    // YYYY-MM-DD
};

// In display order.
std::vector<Finding> examine(const Examined& examined);

}  // namespace systole
