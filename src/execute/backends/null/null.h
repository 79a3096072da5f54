#pragma once
// A device that runs any Program and computes nothing: for planning, for walking schedules, and for tests without an
// accelerator. It accepts any Target and allocates no memory; reads return zeros.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

std::unique_ptr<Device> make_null_device(Target target);

}  // namespace systole
