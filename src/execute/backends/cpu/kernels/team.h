#pragma once
// The one team of threads: every kernel's parallelism goes through run_parts, and through the same OpenMP runtime as
// oneDNN's, so that no two pools compete for the cores. A kernel cuts its work into parts by its sizes alone, never by
// the number of threads, and a part's result does not depend on who computes it or when: results are the same bits
// for any number of threads.

#include <cstdint>

namespace systole::cpu {

enum class Schedule : std::uint8_t {
  contiguous,  // each thread takes one run of neighbouring parts: streams of memory
  cyclic,      // thread t takes t, t + n, t + 2n, …: parts whose cost rises or falls with the index
};

// Calls part(context, index, thread) for each index in [0, parts), on at most `threads` threads, and returns when all
// are done; `thread` is in [0, threads) and no two parts run at once with the same one. Not from inside a part.
// REQUIRES: threads ≥ 1; part does not throw.
void run_parts(int threads, std::int64_t parts, Schedule schedule,
               void (*part)(void* context, std::int64_t index, int thread), void* context);

// How many threads a parallel region gets that is opened on the calling thread without saying so: oneDNN's.
void use_threads(int threads);

}  // namespace systole::cpu
