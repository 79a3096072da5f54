#pragma once
// An agent that follows the plan of the leader: offers its slots by a lease, carries out the plan on its node, and
// reports how its ranks ended. Without the leader it has no ranks: they are killed.

#include <atomic>

#include "operate/launch/node_work.h"

namespace systole {

// `cannot_lead`: why this node does not; empty where it was told not to. Errors: those of `launch`.
Result<LaunchOutcome> follow_launch(const LaunchOptions& options, const RunToken& token,
                                    const std::string& cannot_lead);

}  // namespace systole
