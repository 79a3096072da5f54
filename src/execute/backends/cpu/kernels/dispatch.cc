#include <sys/syscall.h>
#include <unistd.h>

#include "execute/backends/cpu/kernels/kernels.h"
#include "ground/base/error.h"

namespace systole::cpu {

namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "?";
}

bool supports(Isa isa) {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::avx2: return v3;
    case Isa::avx512: return v4;
  }
  return false;
}

Isa best_isa() {
  for (const Isa isa : {Isa::avx512, Isa::avx2}) {
    if (supports(isa)) return isa;
  }
  fail(error(ErrorKind::unsupported, "the cpu backend needs AVX2 and FMA (x86-64-v3), which this machine lacks")
           .hinted("use the reference backend for small models"));
}

const Kernels& kernels_of(Isa isa) {
  CHECK(supports(isa), "this machine does not support {}", name_of(isa));
  return isa == Isa::avx512 ? avx512::kTable : avx2::kTable;
}

namespace {

// Linux grants the state of tiles to a process that asks (Documentation/arch/x86/xstate.rst): ARCH_REQ_XCOMP_PERM of
// XFEATURE_XTILEDATA.
bool has_tiles() {
  static const bool granted = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
                              ::syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return granted;
}

}  // namespace

Int8Unit best_int8_unit(Isa isa) {
  if (isa != Isa::avx512 || !__builtin_cpu_supports("avx512vnni")) return Int8Unit::pairs;
  return has_tiles() ? Int8Unit::amx : Int8Unit::vnni;
}

}  // namespace systole::cpu
