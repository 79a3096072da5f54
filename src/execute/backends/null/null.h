#pragma once
// The device that runs any Program and computes nothing: for planning, for walking schedules, for tests without a
// machine. It takes any Target and allocates no memory; what is read from it is zeros.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

std::unique_ptr<Device> make_null_device(Target target);

}  // namespace systole
