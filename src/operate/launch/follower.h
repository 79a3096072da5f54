#pragma once
// An agent that follows the leader's plan: offers its slots by a lease, carries out the plan on its node, and reports
// how its ranks ended. If the leader is lost, it kills its ranks.

#include <atomic>

#include "operate/launch/node_work.h"

namespace systole {

// `cannot_lead`: why this node does not lead; empty if it was told not to. Errors: those of `launch`.
Result<LaunchOutcome> follow_launch(const LaunchOptions& options, const RunToken& token,
                                    const std::string& cannot_lead);

}  // namespace systole
