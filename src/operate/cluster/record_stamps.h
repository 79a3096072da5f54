#pragma once
// Whether a run's record and ledger are still those that were read, for what stat tells of them: size, time of the last
// change and number on disk. Every write of ours makes another file of that name; a job appends to its ledger, which
// grows; and who edits one in its place changes its time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operate/cluster/record.h"

namespace systole {

struct RecordStamp {
  std::string run;
  std::optional<std::uint64_t> files;  // of both in one number; nothing: they cannot be looked at
};
// Of all runs, by name. Taken before the files are read, it is theirs or that of older ones. Errors: io.
Result<std::vector<RecordStamp>> record_stamps(Submissions& submissions);

}  // namespace systole
