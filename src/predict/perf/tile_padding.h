#pragma once
// Bytes of a value as a compiler lays it out: padded to the tiles of the chip's registers, and aligned.

#include "predict/perf/compiled_peak.h"

namespace systole {

// With the two dims innermost that fill tiles best: the compiler chooses the order of dims. `outer` is not innermost.
Bytes padded(const Type& type, const CompilerLayout& layout, int outer = -1);

// Of queries, keys and values: blocks of rows by the head's size, which is innermost.
Bytes padded_heads(const Type& type, const CompilerLayout& layout);

}  // namespace systole
