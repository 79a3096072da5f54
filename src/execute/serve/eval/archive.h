#pragma once
// An archive of evaluations: a folder with a file for each, an *entry*, which has the SHA-256 of the entry before it (a
// hash chain), so that one that was changed or is missing shows.
//
//   00000004.jsonl   a line {"archive": 1, "entry": 4, "previous": SHA-256 of 00000003.jsonl, …}, then a line for each item
//   head.json        {"archive": 1, "removed": {"entry": 3, "sha256": …}, "last": {"entry": 9, "sha256": …}}
//
// Retention removes the oldest entries; head.json keeps the number and the hash of the last one that went, which is what
// the oldest that stays must have as `previous`. The hash of no entry is "".
//
// Files are whole or absent. An entry is written before head.json has it: one entry after `last` belongs to the chain if
// it fits. head.json is written before the entries up to `removed` are deleted: they no longer belong to it.
//
// Whoever may write to the folder can write a new chain: keep the hash of the last entry elsewhere too.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/store/store.h"

namespace systole {

struct ArchivedEntry {
  std::int64_t number = 0;  // from 1; 0: none
  std::string sha256 = {};  // of its file
};

std::string archive_file(std::int64_t number);

// These functions take the folder as a store. Errors of all: those of the store; corrupt: head.json is damaged.
// The first three: REQUIRES: the caller has locked the folder. Errors also: corrupt: an entry is there that head.json
// does not know.

// The last entry, so that what is wrong with the archive shows before there are results for it.
Result<ArchivedEntry> last_entry(Store& archive);
// `about`: a map for the first line; `lines`: each with its end. On an error the chain is as it was, or has the entry.
Result<ArchivedEntry> append_entry(Store& archive, const Node& about, std::string_view lines);
// Removes all but so many of the newest; returns how many went. Errors also: corrupt, not_found: an entry that would go
// does not fit the chain, or is missing; then nothing goes. REQUIRES: keep > 0.
Result<std::int64_t> keep_newest(Store& archive, std::int64_t keep);

struct ArchiveReport {
  struct Wrong {
    std::int64_t entry = 0;
    std::string why;
  };
  std::int64_t entries = 0;       // files
  std::int64_t removed = 0;       // the number of the last one that went
  ArchivedEntry last = {};        // as recorded
  std::vector<Wrong> wrong = {};  // oldest first
};
// Reads all entries.
Result<ArchiveReport> verify_archive(Store& archive);

}  // namespace systole
