#pragma once
// The steps of several row lengths of a plan, as text.

#include <span>
#include <string>

#include "describe/spec/plan.h"

namespace systole {

// A table: each length with its rows, its share of the steps, its padding and the time of its step; and tokens a second
// over an epoch, padding not counted. Empty for one length.
std::string shapes_text(std::span<const PlannedShape> shapes);

}  // namespace systole
