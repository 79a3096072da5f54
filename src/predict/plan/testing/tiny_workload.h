#pragma once
// Small workloads for tests of plan. Their Programs take a millisecond to build.

#include <string>

#include "describe/program/target.h"
#include "describe/spec/workload.h"
#include "ground/catalog/catalog.h"

namespace systole {

inline constexpr const char* kTinyModels[] = {
    "family: gpt, layers: 12, width: 32, heads: 4, context: 12, vocabulary: 320",
    "family: llama, layers: 12, width: 48, heads: 6, kv_heads: 2, mlp: 96, context: 16, vocabulary: 288",
    "family: gpt, layers: 9, width: 24, heads: 3, context: 8, vocabulary: 261, dropout: 0.1",
    "family: llama, layers: 18, width: 32, heads: 8, kv_heads: 8, mlp: 80, context: 8, vocabulary: 320",
    "family: llama, layers: 12, width: 32, heads: 4, kv_heads: 4, mlp: 24, context: 8, vocabulary: 288, moe: { "
    "experts: 8, top_k: 2 }",
    "family: llama, layers: 24, width: 32, heads: 4, kv_heads: 4, mlp: 24, context: 8, vocabulary: 288, moe: { "
    "experts: 8, top_k: 1, every: 2, dense_mlp: 48 }",
    "family: t5, layers: 4, width: 32, heads: 4, mlp: 64, context: 8, target_context: 8, vocabulary: 288",
};

inline Workload tiny_workload(const std::string& model, std::int64_t batch) {
  return read_workload(fmt::format("systole: 1\nname: t\nmodel: {{ {} }}\ndata: {{ train: {{ files: a.txt }}, "
                                   "tokenizer: {{ vocabulary: 260 }} }}\ntrain: {{ batch: {}, steps: 1, optimizer: {{ "
                                   "rate: 1e-3 }}, precision: {{ compute: bf16, reduce: bf16 }} }}\n",
                                   model, batch),
                       "job.yaml")
      .value();
}

inline const Catalog& catalog() {
  static const Catalog known = Catalog::read(builtin_catalog_files()).value();
  return known;
}

}  // namespace systole
