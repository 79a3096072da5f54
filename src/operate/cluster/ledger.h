#pragma once
// When each job of a run had its machines, in lines that the job itself appends:
//
//   began ID RESTART SECONDS NODES      ended ID RESTART SECONDS CODE      (seconds of Unix time)
//
// A job that was killed has no `ended`; its next one, or the target, says when. Jobs that do not see the folder of the
// run's record keep theirs where they run, and looking at them brings it home.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct Seen;

struct LedgerTurn {  // one job from begin to end
  std::string id;
  std::int64_t restart = 0, began_at = 0, nodes = 0;
  std::optional<std::int64_t> ended_at, code;
};
// Lines that are none of these are left out: the last one may be torn.
std::vector<LedgerTurn> read_ledger(std::string_view text);

// The ledger with those of its lines that are only in `told`, behind.
std::string with_lines_of(std::string ledger, std::string_view told);

// What the ledger in that file says; "" where there is none yet. Errors: io.
Result<std::string> ledger_text(const std::string& path);
// Adds those of the lines that it does not have. Errors: io, no_space.
Status add_to_ledger(const std::string& path, std::string_view lines);

// The last turn of each job that is over, where it has no end, gets the one that its target tells.
void end_by(std::vector<LedgerTurn>& turns, std::span<const Seen> jobs);
// Whether a turn has neither an end nor a next one: it still counts.
bool goes_on(const std::vector<LedgerTurn>& turns);

// Seconds × nodes that it had up to `now`; a turn without an end lasts to the next one of its job, or of a job that the
// run was sent again as, the last to `now`.
double node_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now);
// Seconds × machines-together, as node_seconds with one for all nodes: what a price for all of them multiplies.
double allocated_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now);

}  // namespace systole
