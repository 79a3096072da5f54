#pragma once
// How many servers a cluster needs for the traffic of a workload that serves, from its serving plan
// (predict/serving/serving_plan.h), which `systole plan` prints.

#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "operate/run/catalog_files.h"
#include "predict/serving/arrivals.h"

namespace systole {

// The requests of serve.traffic.trace; without one, none. Errors: of reading it.
Result<std::vector<ArrivingRequest>> trace_of(const Workload& workload);

// Sets serve.replicas where a workload that serves names accelerators and no replicas: as many as carry the traffic, up
// to twice as many. Returns a comment line of how they follow, "# 3 to 6 servers: ...\n"; empty: nothing was to be
// set. Errors: as ServingPlanner; does_not_fit: no number of them carries it.
Result<std::string> set_planned_replicas(CatalogView& view, Workload& workload);

}  // namespace systole
