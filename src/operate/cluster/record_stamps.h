#pragma once
// Detects changes of a run's record and ledger from stat alone: size, modification time and inode. Our writes replace
// the file; a job appends to its ledger, which grows; an in-place edit changes the time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operate/cluster/record.h"

namespace systole {

struct RecordStamp {
  std::string run;
  std::optional<std::uint64_t> files;  // both files in one number; nothing: they cannot be examined
};
// For all runs, by name. Taken before the files are read, a stamp is never newer than what is read. Errors: io.
Result<std::vector<RecordStamp>> record_stamps(Submissions& submissions);

}  // namespace systole
