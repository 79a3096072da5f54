#pragma once
// Requests to submit a run: for the first time, or again to go on.

#include <string>
#include <vector>

#include "operate/run/render_job.h"
#include "operate/runs/submitted_runs.h"

namespace systole {

// A rendered job under its run's name, from this folder.
SubmitRequest ask_of(const RenderedJob& job, const ClusterClient& cluster);

// The same files and program again; the ranks go on from their checkpoint. `sets`: a larger objective.budget, with
// which it is rendered again, or none. Throws not_found: it was rendered elsewhere; invalid: no budget is left; those
// of querying it and of rendering.
SubmitRequest ask_again(ClusterRun& run, const std::vector<std::string>& sets, Clock& clock);

}  // namespace systole
