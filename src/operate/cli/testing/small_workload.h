#pragma once
// For tests: a workload that runs very fast, and ways to change it.

#include <string>

#include "ground/base/error.h"

namespace systole::cli {

inline constexpr const char* kWorkload = R"(systole: 1
name: small
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 16 }
train:
  batch: 8
  steps: 4
  optimizer: { kind: sgd, rate: 0.1 }
)";

// REQUIRES: `what` occurs.
inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  CHECK(at != text.npos, "'{}' is not there", what);
  return text.replace(at, what.size(), with);
}

}  // namespace systole::cli
