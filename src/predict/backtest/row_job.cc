#include "predict/backtest/row_job.h"

#include <algorithm>
#include <numeric>

#include "describe/job/job.h"
#include "predict/backtest/row_layout.h"
#include "predict/backtest/row_machine.h"
#include "predict/backtest/row_model.h"
#include "predict/backtest/row_recompute.h"
#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

struct TypeWords {
  std::string_view words;
  ProductType type;
};
constexpr TypeWords kTypes[] = {{"nvfp4", ProductType::fp4}, {"fp8", ProductType::fp8}, {"int8", ProductType::int8}};

// "not stated" means unfused, the default of frameworks before fused attention existed.
constexpr std::string_view kUnfused[] = {"no flash", "fused softmax", "not stated", "dot-product"};
constexpr std::string_view kBest[] = {"cuDNN", "TE", "splash", "MaxText"};

KernelChoice kernels_of(const PublishedRow& row) {
  const auto any_of = [](std::string_view text, std::span<const std::string_view> all) {
    return std::ranges::any_of(all, [&](std::string_view words) { return text.find(words) != text.npos; });
  };
  KernelChoice kernels;
  for (const TypeWords& type : kTypes) {
    if (!says(row.dtype, type.words)) continue;
    kernels.products = type.type;
    break;
  }
  if (any_of(row.attention, kUnfused))
    kernels.attention = KernelChoice::Attention::unfused;
  else if (!row.attention.empty() && (says(row.attention, "SDPA") || !any_of(row.attention, kBest)))
    kernels.attention = KernelChoice::Attention::flash_2;
  // A graph of the whole step captures all kernels but those of its end; a graph of some modules about half.
  const bool whole = says(row.notes, "cuda graph full_iteration") || says(row.notes, "cuda graph local/full");
  if (says(row.notes, "cuda graph") && !says(row.notes, "cuda graph none")) kernels.captured = whole ? 0.9 : 0.5;
  if (says(row.notes, "deepep") || says(row.notes, "hybridep")) kernels.sent_once = row.top_k.value_or(0);
  kernels.expert_overlap = says(row.notes, "A2A overlap on");
  return kernels;
}

// Total columns of all products of a block.
double width_of_products(const ModelSpec& model) {
  if (const auto* bert = model.if_is<BertSpec>())
    return static_cast<double>(4 * bert->width) + 2 * static_cast<double>(bert->mlp);
  const auto& m = model.as<DecoderSpec>();
  return static_cast<double>(2 * m.head * (m.heads + m.kv_heads)) + (m.gated ? 3 : 2) * static_cast<double>(m.mlp);
}

std::int64_t periods_of(const ModelSpec& model) {
  const auto* decoder = model.if_is<DecoderSpec>();
  return decoder == nullptr ? model.layers() : decoder->moe.periods(decoder->layers);
}

// Divides layers among stages as nanotron does: a stage takes blocks until their cost exceeds its share; the head is
// the last block. Every stage has a layer.
std::vector<std::int64_t> layers_by_cost(const ModelSpec& model, std::int64_t stages) {
  const double width = static_cast<double>(model.width());
  const double head = width * static_cast<double>(model.vocabulary());
  const double block = width * width_of_products(model);
  const std::int64_t layers_in_all = periods_of(model);
  const double share = (static_cast<double>(layers_in_all) * block + head) / static_cast<double>(stages);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), 0);
  std::int64_t left = layers_in_all;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t later = stages - stage - 1;
    const double done = static_cast<double>(layers_in_all - left) * block;
    auto takes = static_cast<std::int64_t>((share * static_cast<double>(stage + 1) - done) / block) + 1;
    if (later == 0) takes = left;
    layers[static_cast<std::size_t>(stage)] = takes = std::clamp<std::int64_t>(takes, 1, left - later);
    left -= takes;
  }
  return layers;
}

TrainSpec train_of(const PublishedRow& row, const RowLayout& layout) {
  TrainSpec train;
  train.batch = *row.batch;
  train.microbatches = layout.microbatches;
  train.steps = 1;
  train.optimizer.rate = 1e-4;
  train.optimizer.clip = 1;
  train.precision.compute = DType::bf16;
  train.precision.reduce = says(row.dtype, "fp32 grad") ? DType::f32 : DType::bf16;
  return train;
}

// In a row, embedding and head may have chunks of their own; here every chunk has a layer.
Status set_chunks(const RowLayout& layout, RowJob& job) {
  std::int64_t& chunks = job.workload.pipeline.chunks;
  const ModelSpec& model = job.workload.model;
  chunks = std::min(layout.chunks, periods_of(model) / layout.stages);
  if (chunks < 1) return error(ErrorKind::unsupported, "fewer layers than stages");
  if (chunks < layout.chunks)
    job.taken.push_back(fmt::format("{} chunks of a stage, for {} have no layer each", chunks, layout.chunks));
  if (chunks > 1 && layout.microbatches % layout.stages != 0)
    return error(ErrorKind::unsupported, "interleaved, with microbatches that the stages do not divide");
  return {};
}

}  // namespace

Result<RowJob> row_job(const PublishedRow& row, const StackProfile& stack, const Catalog& catalog) {
  RowJob job;
  Workload& workload = job.workload;
  workload.name = row.id;
  workload.model = TRY(row_model(row, job.taken));
  const RowMachine machine = TRY(row_machine(row, catalog, job.taken));
  const RowLayout layout = TRY(row_layout(row, machine.devices_of_chip, stack.whole_step, job.taken));
  job.chip = machine.chip;
  job.cluster = machine.cluster;
  job.kernels = kernels_of(row);
  job.kernels.half_copies = stack.half_copies;
  workload.train = train_of(row, layout);
  workload.train.recompute = TRY(row_recompute(row, workload.model, job.taken));
  job.kernels.sums_in_products = stack.sums_in_products;
  job.kernels.splits_dispatch = stack.splits_dispatch;
  job.kernels.updates_in_parts = !stack.whole_step;
  job.kernels.whole_again = stack.whole_again && workload.train.recompute.kind == RecomputeSpec::Kind::block;
  workload.checkpoint.asynchronous = false;
  workload.fully_sharded = layout.stored;
  TRY(set_chunks(layout, job));
  if (layout.stages > 1 && workload.pipeline.chunks == 1 && stack.even_cost)
    workload.pipeline.layers = layers_by_cost(workload.model, layout.stages);
  for (const auto& [axis, size] :
       {std::pair(kPipelineAxis, layout.stages), std::pair("data", layout.replicas), std::pair("fsdp", layout.parts),
        std::pair("expert", layout.experts), std::pair("context", layout.context), std::pair("model", layout.tensor)})
    if (size > 1) workload.mesh.emplace_back(axis, size);
  job.strategy = strategy_of(workload);
  job.strategy.pipeline.stages = static_cast<int>(layout.stages);
  // A compiler of the whole step shards activations between blocks along the sequence; others do if the row says so.
  if (layout.tensor > 1 && !stack.whole_step && !row.sequence_parallel.value_or(false))
    for (AxisRule& rule : job.strategy.sharding.rules)
      if (rule.axis == "model") std::erase(rule.names, "seq");
  return job;
}

}  // namespace systole::backtest
