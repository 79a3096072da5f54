#pragma once
// An agent that follows the plan of the leader: offers its slots by a lease, carries out the plan on its node, and
// reports how its ranks ended. Without the leader it has no ranks: they are killed.

#include <atomic>

#include "operate/launch/node_work.h"

namespace systole {

// Errors: invalid (another workload or token than the leader's), exists (a node of this name is there already), io.
Result<LaunchOutcome> follow_launch(const LaunchOptions& options, const RunToken& token);

}  // namespace systole
