#pragma once
// What a device is, as plain data: enough to partition a graph for it and to plan its memory, nothing that needs it to
// be present. `cpu` fills it for this machine, `catalog` for chips. Same Target, same Program, same hash.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/tensor/dtype.h"

namespace systole {

struct FusionRules {
  bool chains = false;    // elementwise ops may be fused
  int max_operands = 12;  // of one chain
  int max_steps = 32;
};

struct Link {
  std::string axis_kind;  // "network", "ici", "nvlink"
  Seconds latency;
  BytesPerSecond bandwidth;
};

struct Target {
  std::string name;                     // "this-machine(avx512-bf16, 2 threads)"
  std::string kind;                     // of the backend that runs it: reference, cpu, null, xla
  std::int64_t alignment = 64;          // of every buffer, bytes
  Bytes memory_limit;                   // 0: not limited
  std::vector<DType> dtypes;            // that it computes with
  std::vector<DType> library_products;  // of which a library makes products, whose code and objects take memory
  FusionRules fusion;
  std::map<std::string, Bytes> workspace;  // signature of a node (workspace_key) → scratch bytes; absent: none
  std::vector<Link> links;
  int threads = 1;
  bool whole_steps = false;  // a step is one function where it can be (partition/joined.h): who compiles sees it whole
};

std::string to_text(const Target& target);  // stable: part of a Program's hash

}  // namespace systole
