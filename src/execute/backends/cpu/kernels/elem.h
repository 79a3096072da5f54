#pragma once
// Shared by every kernel and its caller: element types, and the report of a call's work. Kernels are compiled once per
// instruction set (kernels.h), so headers shared with the rest of the program contain plain data only: the linker could
// use an inline function compiled for AVX-512 in the whole program.

#include <cstdint>

namespace systole::cpu {

enum class Elem : std::uint8_t { f32, bf16, i32, i64, boolean };

// Bytes per element.
static inline constexpr std::int64_t size_of(Elem elem) {
  return elem == Elem::i64 ? 8 : elem == Elem::bf16 ? 2 : elem == Elem::boolean ? 1 : 4;
}

// The actual work of a call, counted from the sizes it was given and the blocks it went through, by the conventions of
// describe/ir/op.h: add, subtract, multiply, divide are 1 flop each (a sum of n adds n times), each elementary function
// is 1 transcendental, comparisons, selections and conversions are free. Work that the shapes imply but the data makes
// unnecessary (masked blocks, ignored labels) is in `skipped_flops`, not in `flops`: flops + skipped_flops equals the
// op's `work`. Bytes are those of distinct operands and results, whole.
struct KernelReport {
  std::int64_t flops;
  std::int64_t transcendentals;
  std::int64_t skipped_flops;
  std::int64_t skipped_transcendentals;
  std::int64_t bytes_read;
  std::int64_t bytes_written;
};

}  // namespace systole::cpu
