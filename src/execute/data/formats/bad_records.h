#pragma once
// `on_bad_record`: a record that cannot be used stops the reading, or is skipped and counted, up to a cap.

#include <cstdint>
#include <string>

#include "execute/data/formats/record.h"

namespace systole {

enum class OnBadRecord { error, skip };

struct BadRecordRule {
  OnBadRecord on_bad_record = OnBadRecord::error;
  std::int64_t at_most = 1000;  // skipped, over all files that share the tally; one more is an error
};

struct BadRecordTally {
  std::int64_t skipped = 0;
  std::string first;  // the message of the first one
};

// next() of the reader, with bad records skipped where the rule and the format allow it. `use` is called with each
// record, and what it refuses (kinds corrupt and invalid) counts as a bad record too. False at the end.
// Errors: next()'s and use()'s; invalid, with the first one's message, once more than `at_most` were skipped.
Result<bool> next_good(RecordReader& reader, DataRecord& record, const BadRecordRule& rule, BadRecordTally& tally,
                       const std::function<Status(const DataRecord&)>& use = {});

}  // namespace systole
