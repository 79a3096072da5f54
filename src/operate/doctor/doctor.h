#pragma once
// Judges a machine for running workloads: each thing looked at is well, doubtful or wrong, and what is not well says
// what to do. Rules over facts alone; facts.h gathers them.

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
  std::string text, hint;  // the hint is empty only when all is well
};

struct Examined {
  MachineFacts machine;
  std::vector<LibraryFacts> libraries;
  CalibrationFacts calibration;
  std::optional<std::int64_t> threads;  // that a workload asks for
  std::string today;                    // YYYY-MM-DD
};

// In the order in which they are told.
std::vector<Finding> examine(const Examined& examined);

}  // namespace systole
