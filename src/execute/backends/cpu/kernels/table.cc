// The kernel table of one instruction set.

#include "execute/backends/cpu/kernels/entry.h"

namespace systole::cpu::SYSTOLE_ISA {

constinit const Kernels kTable = {
#define SYSTOLE_CPU_ENTRY(name, Args) name,
    SYSTOLE_CPU_KERNELS(SYSTOLE_CPU_ENTRY)
#undef SYSTOLE_CPU_ENTRY
};

}  // namespace systole::cpu::SYSTOLE_ISA
