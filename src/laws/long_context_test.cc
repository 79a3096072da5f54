// A row of 8,192 tokens needs no memory of the order of 8,192 x 8,192, and doubling the row doubles the memory.

#include <gtest/gtest.h>

#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#include "execute/train/training_job.h"

namespace systole::laws {
namespace {

Bytes arena_of(std::int64_t context, const char* precision) {
  CpuOptions options;
  options.threads = 1;
  const std::unique_ptr<Device> device = make_cpu_device(options).value();
  const std::string text = fmt::format(
      "systole: 1\nname: long\n"
      "model: {{ family: llama, layers: 1, width: 64, heads: 2, mlp: 64, context: {}, vocabulary: 260 }}\n"
      "data: {{ train: {{ files: text }}, tokenizer: {{ vocabulary: 260 }} }}\n"
      "train: {{ batch: 1, steps: 1, precision: {}, optimizer: {{ rate: 1e-4 }} }}\n",
      context, precision);
  return make_job(read_workload(text, "long.yaml").value(), *device).value().program->arena;
}

TEST(LongContext, takes_memory_in_proportion) {
  for (const char* precision : {"f32", "bf16"}) {
    const Bytes whole = arena_of(8192, precision);
    EXPECT_LT(whole, Bytes(8192 * 8192)) << precision << ": a byte for each pair is more";
    EXPECT_LT(whole, arena_of(4096, precision) * 2.01) << precision;
  }
}

}  // namespace
}  // namespace systole::laws
#endif
