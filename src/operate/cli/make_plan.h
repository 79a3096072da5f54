#pragma once
// The Plan as a document, out of a job that is prepared.

#include "operate/cli/session.h"

namespace systole::cli {

// `limit`: what the whole process is held to. REQUIRES: all of `p` is there but the plan.
Plan make_plan(const Prepared& p, Bytes limit, Clock& clock);

}  // namespace systole::cli
