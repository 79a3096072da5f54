#pragma once
// From a published row to what perf prices: a Workload and how it lies on a machine, or why there is none.
//
// Degrees become axes of a mesh, in the order in which Megatron numbers ranks, outermost first: pipe, data, fsdp,
// expert, context, model. The axis fsdp is the ranks of the batch that store something in parts: of the optimizer's
// state alone too (ZeRO 1, a distributed optimizer).

#include "describe/graph/partition/training.h"
#include "describe/spec/workload.h"
#include "ground/catalog/catalog.h"
#include "predict/backtest/published_row.h"
#include "predict/perf/cluster.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole::backtest {

struct RowJob {
  Workload workload;
  Strategy strategy;
  const CatalogEntry* chip = nullptr;  // of the catalog
  ClusterOptions cluster;
  KernelChoice kernels;
  std::vector<std::string> taken;  // what the row does not say or no Workload can, and what is taken in its place

  std::int64_t stages() const { return strategy.pipeline.stages; }
};

// Errors: unsupported: a reason in few words, by which rows are counted ("hybrid Mamba").
Result<RowJob> row_job(const PublishedRow& row, const StackProfile& stack, const Catalog& catalog);

}  // namespace systole::backtest
