#pragma once
// The slow reference for every fast backend: runs each node by its op's `reference` facet, on the Program's planned
// arena, with scalars that count every operation. All types, one thread, no optimizations.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

// If `chains` is set, fuses as cpu does, so that both can run the same Program.
std::unique_ptr<Device> make_reference_device(bool chains = true, Bytes memory_limit = Bytes(0));

}  // namespace systole
