#include "predict/backtest/predicted_row.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "describe/job/job.h"
#include "describe/models/list.h"
#include "describe/partition/chunks.h"

namespace systole::backtest {
namespace {

// Programs are built for a few microbatches only: stages hold a bounded number, and all do the same work. Interleaved
// schedules need a multiple of the stages.
std::int64_t shown_microbatches(const RowJob& job) {
  const std::int64_t most = job.stages() > 1 ? 4 * job.stages() : 2;
  return std::min(job.workload.train.microbatches, most);
}

// The workload with shown_microbatches() microbatches of the same size.
Workload shown_workload(const RowJob& job) {
  Workload shown = job.workload;
  shown.train.microbatches = shown_microbatches(job);
  shown.train.batch = job.workload.train.batch * shown.train.microbatches / job.workload.train.microbatches;
  shown.train.batch = std::max(shown.train.batch, shown.train.microbatches);
  return shown;
}

// Everything that decides a job's Programs, as text.
std::string programs_key(const RowJob& job) {
  Workload workload = shown_workload(job);
  workload.name.clear();
  std::string key = to_yaml(workload);
  for (const AxisRule& rule : job.strategy.sharding.rules)
    for (const std::string& name : rule.names) key += rule.axis + "." + name + " ";
  return key;
}

// Everything else that decides the parts of a step and its memory, as text.
std::string parts_key(const RowJob& job) {
  const KernelChoice& kernels = job.kernels;
  std::string key = fmt::format("{} {} {} {} {}", job.chip->name, job.cluster.devices, job.cluster.host.value_or(0),
                                job.cluster.network.value_or(BytesPerSecond(0)).count(), job.cluster.slices);
  for (const std::int64_t dim : job.cluster.torus) key += fmt::format(" {}", dim);
  return key +
         fmt::format(" {} {} {} {} {} {}", static_cast<int>(kernels.products), static_cast<int>(kernels.attention),
                     kernels.captured, kernels.expert_overlap, kernels.half_copies, job.workload.train.microbatches) +
         fmt::format(" {} {} {} {} {}", kernels.updates_in_parts, kernels.splits_dispatch, kernels.sums_in_products,
                     kernels.whole_again, kernels.sent_once);
}

Status make_parts(const StagePrograms& stages, PreparedRow& row) {
  const RowJob& job = *row.job;
  std::vector<const Program*> programs;
  for (const std::size_t index : stages.of_stage) programs.push_back(stages.programs[index].get());
  RowParts parts;
  for (const auto& program : stages.programs) parts.memory.push_back(memory_parts(*program, job.kernels));
  parts.cluster = TRY(cluster_of(*job.chip, job.cluster));
  parts.parts = step_parts(programs, job.strategy.pipeline, static_cast<int>(job.workload.train.microbatches),
                           parts.cluster, job.kernels);
  row.made = std::make_shared<const RowParts>(std::move(parts));
  return {};
}

// A reason by which rows are counted.
std::string reason_of(const Error& error) {
  return error.kind == ErrorKind::unsupported ? error.message : "no Program: " + error.message;
}

// Builds the parts of the rows `alike`, which share their Programs.
void make_all(std::vector<PreparedRow>& rows, std::span<const std::size_t> alike) {
  try {
    const StagePrograms stages = stage_programs(*rows[alike.front()].job).value();
    std::map<std::string, const PreparedRow*> by_key;
    for (const std::size_t i : alike) {
      PreparedRow& row = rows[i];
      const PreparedRow*& same = by_key[parts_key(*row.job)];
      if (same == nullptr) {
        same = &row;
        make_parts(stages, row).value();
      }
      row.made = same->made;
    }
  } catch (const Failure& failure) {
    for (const std::size_t i : alike)
      if (rows[i].made == nullptr) rows[i].refused = reason_of(failure.error());
  }
}

}  // namespace

Result<StagePrograms> stage_programs(const RowJob& job) {
  StagePrograms result;
  const auto stages = static_cast<std::size_t>(job.stages());
  std::vector<std::int64_t> layers, stacks;
  if (stages > 1) {
    stacks = layers_of_repeats(make_model(job.workload.model)->loss({1, 1}, true));
    layers = layers_of_chunks(job.strategy.pipeline, std::accumulate(stacks.begin(), stacks.end(), std::int64_t{0}));
  }
  const Workload workload = shown_workload(job);
  Strategy strategy = job.strategy;
  strategy.microbatches = static_cast<int>(workload.train.microbatches);
  const std::int64_t ranks = job.cluster.devices / static_cast<std::int64_t>(stages);
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::vector<std::int64_t> kind =
        stages > 1 ? kind_of_stage(job.strategy.pipeline, layers, stacks, static_cast<int>(stage)) : layers;
    const auto [program, is_new] = known.try_emplace(kind, result.programs.size());
    result.of_stage.push_back(program->second);
    if (!is_new) continue;
    Job made =
        TRY(make_job(workload, strategy, target_of_accelerators(), {}, static_cast<std::int64_t>(stage) * ranks));
    result.programs.push_back(std::move(made.program));
  }
  return result;
}

std::vector<PreparedRow> prepare(std::vector<PublishedRow> rows, std::span<const StackProfile> stacks,
                                 const Catalog& catalog, const PrepareOptions& options) {
  std::vector<PreparedRow> prepared(rows.size());
  std::map<std::string, std::vector<std::size_t>> alike;  // rows by their Programs
  for (std::size_t i = 0; i < rows.size(); ++i) {
    PreparedRow& row = prepared[i];
    row.row = std::move(rows[i]);
    row.stack = &stack_of(stacks, row.row.framework);
    Result<RowJob> job = row_job(row.row, *row.stack, catalog);
    if (!job.ok()) {
      row.refused = job.error().message;
      continue;
    }
    row.job = std::move(job).value();
    alike[programs_key(*row.job)].push_back(i);
  }
  std::vector<const std::vector<std::size_t>*> work;
  for (const auto& [key, of_key] : alike) work.push_back(&of_key);
  std::atomic<std::size_t> next{0}, done{0};
  std::mutex told;
  const auto worker = [&] {
    for (std::size_t at = next++; at < work.size(); at = next++) {
      make_all(prepared, *work[at]);
      const std::size_t so_far = ++done;
      if (!options.progress) continue;
      const std::lock_guard lock(told);
      options.progress(so_far, work.size());
    }
  };
  std::vector<std::jthread> threads;
  for (int t = 1; t < options.threads; ++t) threads.emplace_back(worker);
  worker();
  threads.clear();
  return prepared;
}

double predicted_gib(const PreparedRow& row, const StackProfile& stack) {
  CHECK(row.made != nullptr, "'{}' has no job: {}", row.row.id, row.refused);
  Bytes most;
  for (const MemoryParts& memory : row.made->memory) most = std::max(most, device_memory(memory, stack).total());
  return most / kGiB;
}

PredictedRow predict(const PreparedRow& row, const StackProfile& stack) {
  PredictedRow predicted;
  predicted.memory_gib = predicted_gib(row, stack);
  predicted.time = step_time(row.made->parts, stack);
  const double peak = products_of(row.made->cluster.chip, ProductType::bf16).peak.count();
  predicted.mfu =
      row.made->parts.model_flops / (predicted.time.seconds * static_cast<double>(row.made->cluster.devices) * peak);
  return predicted;
}

}  // namespace systole::backtest
