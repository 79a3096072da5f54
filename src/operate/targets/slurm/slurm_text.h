#pragma once
// Parses the output of Slurm's programs. Format and states: squeue(1) of Slurm 22.05, "JOB STATE CODES".

#include <string>
#include <string_view>
#include <vector>

#include "operate/cluster/cluster.h"

namespace systole {

// The argument of `squeue --noheader --array --Format=`, with SLURM_TIME_FORMAT=%s in its environment: fields end in a
// byte that does not occur in our texts.
extern const char* const kSqueueFormat;

// Jobs with our label; skips other jobs, and lines that are not such a list.
std::vector<JobStatus> read_squeue(std::string_view text);

// The value of "--comment=" of a submission, and its inverse.
std::string slurm_label(std::string_view run, std::string_view submission);

// Maps a Slurm state; `restarts`: how often the job had begun before.
RunState state_of_slurm(std::string_view state, std::int64_t restarts);

// Parses the output of `sbatch --parsable`: ID or ID;CLUSTER. Errors: io, it is neither.
Result<std::string> read_sbatch(std::string_view text);

// sinfo's states, one line per machine (%T %v): whether one is down, reserved, powered off, or has not answered:
// "idle*", or no version of its daemon, when a restarted controller still assumes that an earlier job runs there.
bool has_machines_away(std::string_view states);

}  // namespace systole
