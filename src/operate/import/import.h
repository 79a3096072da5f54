#pragma once
// Other launchers' lines and files as a workload: an sbatch script, a line of torchrun, srun, torchx or gcloud, a
// manifest of Kubernetes. They are read, never run. What they say becomes a key, or is told with the reason why it does
// not, or refuses the whole. Pure: no files but those that `beside` gives.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct ImportSource {
  std::string text;
  std::string file;  // for messages
  // A file that stands beside it, by name; without: there are none. Errors: not_found.
  std::function<Result<std::string>(const std::string& name)> beside = {};
};

struct LeftOut {
  std::string what, why;
};

struct Imported {
  std::string yaml;  // a workload: each value with a comment that says where it comes from
  std::vector<LeftOut> left_out;
  std::string missing;         // what has to be said before something runs; empty: nothing
  std::vector<LeftOut> notes;  // what is carried over, and in which form
};

// Errors: invalid, unsupported: all at once, with a hint each.
Result<Imported> import_job(const ImportSource& source);

}  // namespace systole
