#pragma once
// A workload's held-out and training text, source by source, and other files to look for in it, as texts to compare.

#include <memory>
#include <string>
#include <vector>

#include "execute/data/contamination.h"
#include "operate/run/run_data.h"

namespace systole {

// Files whose documents are looked for in the training text, such as an evaluation suite's.
struct AgainstFiles {
  std::vector<std::string> patterns;  // of this machine and of buckets
  std::string field;                  // of their records; empty: as data.train, or a mixture's first source, says
};

struct ContaminationTexts {
  std::unique_ptr<Store> files;  // the texts borrow it
  std::vector<ComparedText> held_out, against, training;
};
// `progress`: of fetching objects. REQUIRES: the data is text. Errors: those of check_data_files; not_found, invalid:
// the files to look for.
Result<ContaminationTexts> contamination_texts(const Workload& workload, const WorkloadSource& source,
                                               const AgainstFiles& against, const DataProgress& progress);

}  // namespace systole
