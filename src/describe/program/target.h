#pragma once
// The hardware that a Program is partitioned for, as plain data: enough to partition a graph and to plan its memory,
// without the device being present.
// `cpu` fills it for this machine, `catalog` for chips. The same Target gives the same Program and the same hash.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "describe/ops/fusion_rules.h"
#include "ground/base/units.h"
#include "ground/tensor/dtype.h"

namespace systole {

struct Link {
  std::string axis_kind;  // "network", "ici", "nvlink"
  Seconds latency;
  BytesPerSecond bandwidth;
};

struct Target {
  std::string name;                     // "this-machine(avx512-bf16, 2 threads)"
  std::string kind;                     // of the backend: reference, cpu, null, xla
  std::int64_t alignment = 64;          // of every buffer, bytes
  Bytes memory_limit;                   // 0: not limited
  std::vector<DType> dtypes;            // that it computes in
  std::vector<DType> library_products;  // products of these use a library, whose code and objects take memory
  FusionRules fusion;
  std::map<std::string, Bytes> workspace;  // workspace_key of a node → scratch bytes; absent: none
  std::vector<Link> links;
  int threads = 1;
  // The training step is one function where possible (partition/fused_step.h), so that the compiler sees all of it.
  bool whole_steps = false;
};

// What partitioning assumes of an accelerator before its backend is known: its compiler fuses elementwise ops.
Target target_of_accelerators();

std::string to_text(const Target& target);  // stable: part of a Program's hash

}  // namespace systole
