#pragma once
// The team of threads: every kernel runs in parallel through run_parts, on the OpenMP runtime that oneDNN uses too, so
// that no two pools compete for the cores. A kernel splits its work into parts by its sizes alone, never by the number
// of threads, and a part's result does not depend on the thread or time: results have the same bits for any number of
// threads.

#include <cstdint>

namespace systole::cpu {

enum class Schedule : std::uint8_t {
  contiguous,  // each thread takes one run of neighbouring parts: for streaming memory
  cyclic,      // thread t takes t, t + n, t + 2n, …: for parts whose cost rises or falls with the index
};

// Calls part(context, index, thread) for each index in [0, parts), on at most `threads` threads, and returns when all
// are done. `thread` is in [0, threads); no two parts with the same `thread` run at once. Do not call it inside a part.
// REQUIRES: threads ≥ 1; part does not throw.
void run_parts(int threads, std::int64_t parts, Schedule schedule,
               void (*part)(void* context, std::int64_t index, int thread), void* context);

// Sets the default number of threads of parallel regions opened by the calling thread: for oneDNN.
void use_threads(int threads);

}  // namespace systole::cpu
