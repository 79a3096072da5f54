// Prices whole steps: jobs with models of describe/models, on clusters of the catalog.

#include "predict/perf/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "describe/job/job.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/product_groups.h"

namespace systole {
namespace {

const Catalog& catalog() {
  static const Catalog known = Catalog::read(builtin_catalog_files()).value();
  return known;
}

struct Case {
  std::string preset = "llama2-7b", mesh = "fsdp: 8";
  int batch = 16, microbatches = 1;
  std::string more;   // keys of the workload
  std::string train;  // keys of its section train, after a comma
  std::string reduce = "bf16";
};

Workload workload_of(const Case& c) {
  return read_workload(
             fmt::format("systole: 1\nname: t\nmodel: {{ preset: {} }}\ndata: {{ train: {{ files: a.txt }}, "
                         "tokenizer: {{ vocabulary: 300 }} }}\ntrain: {{ batch: {}, microbatches: {}, steps: 1, "
                         "optimizer: {{ rate: 1e-3, clip: 1 }}, precision: {{ compute: bf16, reduce: {} }}{} }}\n"
                         "mesh: {{ {} }}\n{}",
                         c.preset, c.batch, c.microbatches, c.reduce, c.train, c.mesh, c.more),
             "job.yaml")
      .value();
}

struct Priced {
  std::vector<std::unique_ptr<const Program>> programs;
  StepParts parts;
  Cluster cluster;
};

Priced priced(const Case& c, const CatalogEntry& chip, const KernelChoice& kernels = {}) {
  const Workload workload = workload_of(c);
  Strategy strategy = strategy_of(workload);
  strategy.snapshot = false;
  const Target target = target_of_accelerators();
  std::int64_t devices = 1, stages = 1;
  for (const auto& [axis, size] : workload.mesh) {
    devices *= size;
    if (axis == "pipe") stages = size;
  }
  Priced p;
  std::vector<const Program*> of_stage;
  for (std::int64_t s = 0; s < stages; ++s) {  // pipe is outermost
    p.programs.push_back(
        std::move(make_job(workload, strategy, target, nullptr, s * devices / stages).value().program));
    of_stage.push_back(p.programs.back().get());
  }
  ClusterOptions options;
  options.devices = devices;
  p.cluster = cluster_of(chip, options).value();
  strategy.pipeline.stages = static_cast<int>(stages);
  p.parts = step_parts(of_stage, strategy.pipeline, strategy.microbatches, p.cluster, kernels);
  return p;
}

const CatalogEntry& entry(const char* chip) { return *catalog().find(chip).value(); }
const StackProfile& stack() { return stack_of(builtin_stacks(), "megatron-core"); }

// No lying utilisation: model FLOPs are never faster than the dense peak, for any chip, type and layout.
TEST(StepTime, utilisation_is_below_one) {
  for (const char* chip : {"a100", "h100", "b200", "v5e", "v5p", "v6e"}) {
    for (const char* mesh : {"fsdp: 8", "data: 2, model: 4", "pipe: 2, data: 4"}) {
      const Priced p = priced({.mesh = mesh, .microbatches = 2}, entry(chip));
      const double peak = p.cluster.chip.products.at(ProductType::bf16).peak.count() * 8;
      for (const StackProfile& s : builtin_stacks()) {
        const double used = p.parts.model_flops / step_time(p.parts, s).seconds / peak;
        EXPECT_LT(used, 0.95) << chip << " " << mesh << " " << s.name;
        EXPECT_GT(used, 0.05) << chip << " " << mesh << " " << s.name;
      }
    }
  }
}

TEST(StepTime, shares_add_up) {
  for (const char* mesh : {"fsdp: 8", "data: 2, model: 4", "pipe: 2, data: 2, model: 2", "pipe: 4, fsdp: 2"}) {
    const StepTime time = step_time(priced({.mesh = mesh, .microbatches = 4}, entry("h100")).parts, stack());
    double sum = 0;
    for (const double s : time.shares) {
      EXPECT_GE(s, -1e-12) << mesh;
      sum += s;
    }
    EXPECT_NEAR(sum, time.seconds, 1e-9 * time.seconds) << mesh;
  }
}

// Better parts are never slower.
TEST(StepTime, more_of_anything_is_never_slower) {
  for (const char* mesh : {"data: 4, model: 8", "fsdp: 32", "pipe: 2, fsdp: 16"}) {
    CatalogEntry h100 = entry("h100");
    const Case c{.mesh = mesh, .batch = 64, .microbatches = 2};
    const double before = step_time(priced(c, h100).parts, stack()).seconds;
    for (const char* fact : {"memory.bandwidth", "nvlink.bandwidth", "network.bandwidth", "reached.bf16"}) {
      CatalogEntry better = h100;
      better.facts.at(fact).value *= 1.2;
      EXPECT_LE(step_time(priced(c, better).parts, stack()).seconds, before) << mesh << " " << fact;
    }
  }
}

// Seconds of messages that carry gradients, per step.
double seconds_of_gradients(const StepParts& parts) {
  double seconds = 0;
  const auto add = [&](const FunctionParts& function, double times) {
    for (const StretchParts& stretch : function)
      seconds += times * stretch.times * (stretch.once.gradients.seconds + stretch.once.gradients.far_seconds);
  };
  for (const ChunkParts& chunk : parts.chunks) add(chunk.backward, parts.microbatches);
  for (const FunctionParts& after : parts.after) add(after, 1);
  return seconds;
}

// Gradients that are summed in bf16 have half the bytes of those in f32. Gradients that are scattered within the
// backward are cast first, which takes time: for them only the messages are compared.
TEST(StepTime, fewer_bytes_are_never_slower) {
  for (const char* chip : {"a100", "h100", "b200", "v5p"}) {
    for (const char* mesh : {"data: 16, model: 2", "data: 32", "pipe: 2, data: 8, model: 2", "pipe: 4, data: 8",
                             "fsdp: 32", "data: 4, fsdp: 8"}) {
      const bool scattered = std::string_view(mesh).find("fsdp") != std::string_view::npos;
      SCOPED_TRACE(fmt::format("{} {}", chip, mesh));
      const auto reduced_in = [&](const char* type) {
        return priced({.mesh = mesh, .batch = 64, .microbatches = 2, .reduce = type}, entry(chip)).parts;
      };
      const StepParts half = reduced_in("bf16"), whole = reduced_in("f32");
      EXPECT_NEAR(seconds_of_gradients(whole) / seconds_of_gradients(half), 2, 0.1);
      for (const StackProfile& s : builtin_stacks()) {
        const StepTime of_half = step_time(half, s), of_whole = step_time(whole, s);
        EXPECT_LT(of_half[StepShare::gradients], of_whole[StepShare::gradients]) << s.name;
        if (!scattered) { EXPECT_LT(of_half.seconds, of_whole.seconds) << s.name; }
      }
    }
  }
}

// With many microbatches only some rounds are simulated: the same to the last digits as simulating all.
TEST(StepTime, many_microbatches_are_played_as_if_all_were) {
  for (const char* more : {"", "pipeline: { chunks: 2 }", "pipeline: { schedule: gpipe }"}) {
    const Priced p =
        priced({.mesh = "pipe: 4, model: 2", .batch = 128, .microbatches = 128, .more = more}, entry("a100"));
    StepParts few = p.parts;
    const auto seconds = [&](int microbatches) {
      few.microbatches = microbatches;
      return step_time(few, stack()).seconds;
    };
    const double whole = seconds(128);
    // By the slope between two counts that are simulated to the end.
    const double each = (seconds(16) - seconds(12)) / 4;
    EXPECT_NEAR(whole, seconds(16) + each * 112, 1e-6 * whole) << more;
  }
}

// Equal stages: the bubble is (stages - 1) microbatches, divided by the chunks of a stage.
TEST(StepTime, bubble_is_the_papers) {
  const auto bubble = [](const char* more) {
    Priced p = priced({.mesh = "pipe: 4", .batch = 16, .microbatches = 16, .more = more}, entry("a100"));
    for (std::size_t c = 1; c < p.parts.chunks.size(); ++c) p.parts.chunks[c] = p.parts.chunks[1];
    p.parts.chunks[0] = p.parts.chunks[1];
    for (ChunkParts& chunk : p.parts.chunks) chunk.handed_on = {};
    StackProfile quiet = stack();
    const StepTime time = step_time(p.parts, quiet);
    double busy = time.seconds - time[StepShare::bubble] - time[StepShare::fixed] - time[StepShare::update];
    for (const StepShare s : {StepShare::gradients, StepShare::parameters}) busy -= time[s];
    return time[StepShare::bubble] / (busy / 16);
  };
  EXPECT_NEAR(bubble(""), 3, 0.05);
  EXPECT_NEAR(bubble("pipeline: { chunks: 2 }"), 1.5, 0.05);
}

TEST(ProductGroups, weights_of_one_operand_are_one_product) {
  const Priced p = priced({.mesh = "data: 1", .batch = 1}, entry("h100"));
  const Graph& forward = p.programs[0]->function_named("forward").graph;
  const auto layers = std::ranges::find_if(forward.nodes(), [](const GraphNode& n) { return !n.regions.empty(); });
  ASSERT_NE(layers, forward.nodes().end());
  std::vector<std::int64_t> columns;
  double flops = 0;
  for (const ProductGroup& group : product_groups(layers->regions[0])) {
    columns.push_back(group.dims.columns);
    flops += 2.0 * static_cast<double>(group.dims.rows * group.dims.columns) * static_cast<double>(group.dims.summed);
  }
  EXPECT_EQ(columns, (std::vector<std::int64_t>{3 * 4096, 4096, 2 * 11008, 4096}));
  EXPECT_EQ(flops, 2.0 * 4096 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008));
  // Backward of q, k and v: the input's gradient is one sum, the weights' gradients are one product.
  const Graph& backward = p.programs[0]->function_named("backward").graph;
  const auto back = std::ranges::find_if(backward.nodes(), [](const GraphNode& n) { return !n.regions.empty(); });
  double back_flops = 0;
  std::size_t groups = 0;
  for (const ProductGroup& group : product_groups(back->regions[0])) {
    back_flops +=
        2.0 * static_cast<double>(group.dims.rows * group.dims.columns) * static_cast<double>(group.dims.summed);
    ++groups;
  }
  EXPECT_EQ(back_flops, 2 * flops);
  EXPECT_EQ(groups, 8u);
}

// With recomputation, the input of a layer is the left operand of a product and of its weight's gradient. With 4,096
// tokens, equal to the model's width, both have equal sizes.
TEST(ProductGroups, sizes_that_are_equal_by_chance_make_no_group) {
  const auto shapes = [](int rows) {
    const Priced p = priced({.mesh = "data: 1", .batch = rows, .train = ", recompute: block"}, entry("h100"));
    const Graph& backward = p.programs[0]->function_named("backward").graph;
    const auto layers = std::ranges::find_if(backward.nodes(), [](const GraphNode& n) { return !n.regions.empty(); });
    std::vector<std::int64_t> columns;
    for (const ProductGroup& group : product_groups(layers->regions[0])) columns.push_back(group.dims.columns);
    return columns;
  };
  EXPECT_EQ(shapes(1), shapes(3));
}

// 14 bytes per parameter, without gradients and activations; a sharded optimizer has its shard of twelve.
TEST(DeviceMemory, parameters_and_state_are_the_papers) {
  const auto state = [](const std::string& stored) {
    const Priced p = priced({.mesh = "fsdp: 8", .batch = 8, .more = "fully_sharded: " + stored}, entry("h100"));
    const MemoryByOwner owners = memory_by_owner(*p.programs[0]);
    const Bytes bytes =
        owners[Residence::parameter] + owners[Residence::state] + memory_parts(*p.programs[0], {}).copies;
    return static_cast<double>(bytes.count()) / 6738415616.0;
  };
  EXPECT_NEAR(state("nothing"), 14, 0.01);          // 2 + 4 + 4 + 4
  EXPECT_NEAR(state("state"), 2 + 12.0 / 8, 0.01);  // Rajbhandari et al., "ZeRO", figure 1
  EXPECT_NEAR(state("parameters"), 2.0 / 8 + 12.0 / 8, 0.01);
}

// Memory that a stack saves over the Program is not a term of its own.
TEST(DeviceMemory, no_term_is_below_zero_and_the_sum_stays) {
  const Priced p = priced({.mesh = "fsdp: 8", .batch = 8, .more = "fully_sharded: state"}, entry("h100"));
  const MemoryParts parts = memory_parts(*p.programs[0], {});
  ASSERT_LT(parts.copies, Bytes());
  const DeviceMemory memory = device_memory(parts, stack());
  for (const auto& [name, term] : memory.terms) EXPECT_GE(term, Bytes()) << name;
  MemoryParts without = parts;
  without.copies = Bytes();
  EXPECT_EQ(memory.total(), device_memory(without, stack()).total() + parts.copies);
}

// 32,000 logits of Llama 2 for each of 4,096 tokens of a row, in f32, of the previous microbatch if there is one.
TEST(DeviceMemory, a_loss_is_held_from_microbatch_to_microbatch) {
  const auto held = [](int microbatches, bool holds) {
    const Priced p = priced({.mesh = "data: 1", .batch = microbatches, .microbatches = microbatches}, entry("h100"));
    StackProfile profile = stack();
    profile.holds_loss = holds;
    for (const auto& [name, bytes] : device_memory(*p.programs[0], {}, profile).terms)
      if (name == "loss held") return bytes;
    return Bytes(-1);
  };
  EXPECT_EQ(held(2, true), Bytes(std::int64_t{4} * 32000 * 4096));
  EXPECT_EQ(held(1, true), Bytes());
  EXPECT_EQ(held(2, false), Bytes());
}

// A step's end uses whole gradients and parameters in f32; stacks process them bucket by bucket.
TEST(DeviceMemory, an_update_in_parts_needs_nothing_besides) {
  const auto total = [](const char* train, bool in_parts) {
    const Priced p = priced({.preset = "llama2-70b",
                             .mesh = "pipe: 2, fsdp: 16, model: 4",
                             .batch = 32,
                             .microbatches = 2,
                             .more = "fully_sharded: state",
                             .train = train},
                            entry("h100"));
    KernelChoice kernels;
    kernels.updates_in_parts = in_parts;
    return device_memory(*p.programs[0], kernels, stack()).total() / kGiB;
  };
  // A sharded state is updated in place: 8.6 billion parameters of a device need no more bytes at the step's end than
  // before, even with recomputation.
  for (const char* train : {"", ", recompute: block"}) EXPECT_EQ(total(train, true), total(train, false));
  // Never below what is kept from step to step: 2 + 2 bytes per parameter, and 12 for a sixteenth of them.
  EXPECT_GT(total(", recompute: block", true), 8.6 * (2 + 2 + 12.0 / 16) / 1.0737);
}

}  // namespace
}  // namespace systole
