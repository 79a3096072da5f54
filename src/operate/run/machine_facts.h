#pragma once
// The facts about this machine that operate/doctor judges: what plans and runs would use.

#include <vector>

#include "ground/base/clock.h"
#include "operate/doctor/facts.h"

namespace systole {

std::vector<LibraryFacts> library_facts();

// The calibration that plans would use for this machine. If no device opens, only `stale` is set: the error.
CalibrationFacts calibration_facts(Clock& clock);

}  // namespace systole
