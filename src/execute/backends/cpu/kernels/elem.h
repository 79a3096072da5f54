#pragma once
// What every kernel shares with its caller: element types, and the report of what a call did. Kernels are compiled
// several times for different instruction sets (see kernels.h), so the headers between them and the rest of the
// program hold plain data only: an inline function here could be compiled for AVX-512 and then be taken by the linker
// for the whole program.

#include <cstdint>

namespace systole::cpu {

enum class Elem : std::uint8_t { f32, bf16, i32, i64, boolean };

// Bytes per element.
static inline constexpr std::int64_t size_of(Elem elem) {
  return elem == Elem::i64 ? 8 : elem == Elem::bf16 ? 2 : elem == Elem::boolean ? 1 : 4;
}

// What a call really did, counted from the sizes it was given and the blocks it went through, by the conventions of
// describe/graph/op.h: add, subtract, multiply, divide are 1 flop each (a sum of n adds n times), each elementary
// function is 1 transcendental, comparisons, selections and conversions are nothing. Work that the shapes ask for but
// the data made needless (masked blocks, ignored labels) is in `skipped_flops` and not in `flops`:
// flops + skipped_flops is what the op's `work` says. Bytes are those of distinct operands and results, whole.
struct KernelReport {
  std::int64_t flops;
  std::int64_t transcendentals;
  std::int64_t skipped_flops;
  std::int64_t skipped_transcendentals;
  std::int64_t bytes_read;
  std::int64_t bytes_written;
};

}  // namespace systole::cpu
