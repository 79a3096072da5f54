#pragma once
// What the ranks of a served model tell each other at their rendezvous (serving_ranks.h), as text.

#include <cstdint>
#include <optional>
#include <string>

#include "describe/job/engine_program.h"
#include "describe/program/target.h"

namespace systole {

// An adapter that rank 0 serves; each rank has its files.
struct RankedAdapter {
  std::string name;
  std::int64_t rank = 0;  // of its matrices
  std::string hash;       // hash_of(LoraAdapter)
};

// By rank 0: what each rank serves.
struct RankedEngine {
  EngineOptions options;                // without adapters
  std::vector<RankedAdapter> adapters;  // in the order of Engine::set_adapter
  std::optional<std::int64_t> step;     // of the checkpoint; nothing: a published model
  bool one_machine = true;              // shared memory; otherwise TCP
  std::optional<Link> link;             // between the ranks: all choose the same algorithms by it
};

std::string to_text(const RankedEngine& engine);
// Errors: corrupt.
Result<RankedEngine> ranked_engine_from(const std::string& text);

// An error of a rank, and back, with the rank before its message.
std::string to_text(const Error& error);
Error error_from_text(const std::string& text, const std::string& rank);

}  // namespace systole
