#pragma once
// What Slurm's programs print, read. Format and states: squeue(1) of Slurm 22.05, "JOB STATE CODES".

#include <string>
#include <string_view>
#include <vector>

#include "operate/cluster/cluster.h"

namespace systole {

// The words behind `squeue --noheader --array --Format=`, and for its environment SLURM_TIME_FORMAT=%s: fields end in
// a byte that no text of ours has.
extern const char* const kSqueueFormat;

// Jobs that carry a label of ours; the others, and lines that are no such list, are left out.
std::vector<Seen> read_squeue(std::string_view text);

// "--comment=" of what is submitted, and back.
std::string slurm_label(std::string_view run, std::string_view submission);

// The phase that a state of Slurm's is, in its words; `restarts`: how often the job had begun before.
Phase phase_of_slurm(std::string_view state, std::int64_t restarts);

// What `sbatch --parsable` prints: ID or ID;CLUSTER. Errors: io, it is neither.
Result<std::string> read_sbatch(std::string_view text);

// sinfo's states, a line a machine (%T %v): one is down, set aside, switched off, or has not answered: "idle*", or with
// no version of its daemon, where a controller that was just started thinks that a job of before still runs there.
bool has_machines_away(std::string_view states);

}  // namespace systole
