#pragma once
// Answers that are programs: each is put into a file with its tests, and passes if a command ends with exit code 0.
// What runs it, and in what bounds, comes from outside (EvalModel::run_program).
//
// pass@k, the chance that one of k samples passes, is estimated from n samples of which c passed, without bias, as
// 1 - C(n-c, k) / C(n, k): Chen et al., arXiv:2107.03374, section 2.1.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "execute/serve/field_template.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

struct ProgramSpec {
  FieldTemplate text = {};                // the file: of an example's fields and of {response}, the answer
  std::string file = "program.py";        // its name
  std::vector<std::string> command = {};  // runs beside the file
  std::int64_t samples = 1, k = 1;        // answers to each item, and k of them
  double temperature = 0;
  std::uint64_t seed = 0;
  Seconds timeout{10.0};
  Bytes memory{std::int64_t{1} << 30};
};

struct ProgramTrial {
  bool passed = false;
  std::string why = {};  // it did not
};
// `text`: of the file. A program that fails is no error.
using RunProgram = std::function<Result<ProgramTrial>(const ProgramSpec& spec, const std::string& text)>;

// REQUIRES: 0 <= passed <= samples, 1 <= k <= samples.
double pass_at_k(std::int64_t samples, std::int64_t passed, std::int64_t k);

}  // namespace systole
