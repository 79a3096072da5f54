#pragma once
// For tests: a small workload, and the result of reading it.

#include <string>

#include "describe/spec/workload.h"

namespace systole {

inline constexpr const char* kSmall = R"(systole: 1
name: small
model: { family: gpt, layers: 2, width: 64, heads: 4, context: 32 }
data:
  train: { files: a.txt }
  held_out: { files: [b.txt, c.txt] }
  tokenizer: { vocabulary: 300 }
train: { batch: 4, steps: 10, optimizer: { rate: 1e-3 } }
)";

inline Workload read(const std::string& text, const WorkloadOptions& options = {}) {
  return read_workload(text, "job.yaml", options).value();
}

inline std::string errors_of(const std::string& text, const WorkloadOptions& options = {}) {
  const auto workload = read_workload(text, "job.yaml", options);
  return workload.ok() ? "no error" : to_string(workload.error());
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  CHECK(at != text.npos, "no '{}'", from);
  return text.replace(at, from.size(), to);
}

}  // namespace systole
