#pragma once
// The model for the first workload of `systole init TEXT`.

#include "ground/base/clock.h"
#include "operate/init/pattern.h"

namespace systole {

// The largest model that the text suffices for and that this machine trains within kLongestFirstRun; otherwise the
// smallest one. `first`: the workload that gets it. Throws invalid, under its name, if it cannot be written or read.
FirstModel chosen_first_model(const TextFacts& text, FirstWorkload first, Clock& clock);

}  // namespace systole
