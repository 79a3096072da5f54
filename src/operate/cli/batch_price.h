#pragma once
// What a batch takes, before it starts: rows, tokens, time on this machine, memory and bytes of its input.

#include <optional>
#include <string>

#include "execute/serve/batch/batch_run.h"
#include "operate/run/machine.h"
#include "predict/serving/step_times.h"

namespace systole::cli {

struct PricedBatch {
  BatchPrice price;
  std::int64_t rows = 0;        // of the job, with those that are finished
  std::int64_t failed = 0;      // of them, finished with an error
  std::optional<Seconds> time;  // with answers as long as they may be; nothing: `unknown` says why
  std::string unknown, device, rates;
  ServingMemory memory;  // of the engine
  Bytes input;
};

// Errors: Failure(invalid), as estimate (predict/perf/estimate.h).
PricedBatch priced(const BatchPrice& price, const Engine& engine, const Machine& machine);

std::string line_of(const PricedBatch& batch);   // "12 rows to compute, with 48 prompt tokens, …"
std::string lines_of(const PricedBatch& batch);  // all of it
Node node_of(const PricedBatch& batch);

}  // namespace systole::cli
