#pragma once
// Converts a published row to what perf prices: a Workload and its layout on a machine, or says why there is none.
//
// Degrees of parallelism become mesh axes, in the order of Megatron's ranks, outermost first: pipe, data, fsdp, expert,
// context, model. The axis fsdp holds the data-parallel ranks that shard anything, even only the optimizer's state
// (ZeRO 1, a distributed optimizer).

#include "describe/partition/training.h"
#include "describe/spec/workload.h"
#include "ground/catalog/catalog.h"
#include "predict/backtest/published_row.h"
#include "predict/perf/device_cluster.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"

namespace systole::backtest {

struct RowJob {
  Workload workload;
  Strategy strategy;
  const CatalogEntry* chip = nullptr;  // of the catalog
  ClusterOptions cluster;
  KernelChoice kernels;
  std::vector<std::string> taken;  // what the row omits or a Workload cannot express, and what is used instead

  std::int64_t stages() const { return strategy.pipeline.stages; }
};

// Errors: unsupported, with a reason in few words, by which rows are counted ("hybrid Mamba").
Result<RowJob> row_job(const PublishedRow& row, const StackProfile& stack, const Catalog& catalog);

}  // namespace systole::backtest
