#pragma once
// For tests of the `data` commands: a small text, and `data build` of a workload that reads it.

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {

inline std::string data_line(int i) { return fmt::format("alpha {} of beta{}", i * 7919 % 1000, i % 13); }

// 300 documents, a line each.
inline std::string data_text() {
  std::string text;
  for (int i = 0; i < 300; ++i) text += data_line(i) + "\n";
  return text;
}

// `more`: keys of data.train, each with a comma before it.
inline Captured build_data(const SystoleRunner& systole, const std::string& files, const std::string& more = {}) {
  systole.write("job.yaml", fmt::format("systole: 1\nname: text\nmodel: {{ family: gpt, layers: 1, width: 16, "
                                        "heads: 2, context: 32 }}\ndata: {{ train: {{ files: {}{} }}, folder: data, "
                                        "tokenizer: {{ vocabulary: 300 }} }}\ntrain: {{ batch: 2, steps: 3, "
                                        "optimizer: {{ kind: sgd, rate: 1e-2 }} }}\n",
                                        files, more));
  return systole.run({"data", "build", "job.yaml"});
}

}  // namespace systole::cli
