#pragma once
// The slow twin of every fast backend: runs each node through its op's `reference` facet, on the arena that the Program
// planned, with scalars that count every operation. Any type, one thread, no tricks.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

// Fuses as cpu does when `chains` is set, so that the two can run the same Program.
std::unique_ptr<Device> make_reference_device(bool chains = true, Bytes memory_limit = Bytes(0));

}  // namespace systole
