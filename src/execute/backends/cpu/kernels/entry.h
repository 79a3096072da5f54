#pragma once
// For kernel sources only: declares the kernels of this compilation, in the namespace of its instruction set.

#include "execute/backends/cpu/kernels/kernels.h"

namespace systole::cpu::SYSTOLE_ISA {

#define SYSTOLE_CPU_DECLARE(name, Args) KernelReport name(const Args& args);
SYSTOLE_CPU_KERNELS(SYSTOLE_CPU_DECLARE)
#undef SYSTOLE_CPU_DECLARE

extern const Kernels kTable;

}  // namespace systole::cpu::SYSTOLE_ISA
