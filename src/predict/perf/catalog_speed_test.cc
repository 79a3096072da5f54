#include "predict/perf/catalog_speed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ops/ops.h"
#include "predict/perf/estimate.h"

namespace systole {
namespace {

Catalog builtin() { return Catalog::read(builtin_catalog_files()).value(); }

TEST(CatalogSpeed, facts_of_a_core_times_the_cores) {
  const Catalog catalog = builtin();
  const MachineSpeed speed = speed_of(*catalog.find("cpu-avx512_bf16").value(), 2).value();
  EXPECT_DOUBLE_EQ(matmul_rate(speed, DType::bf16).count(), 0.385e12);
  EXPECT_DOUBLE_EQ(matmul_rate(speed, DType::f32).count(), 0.193e12);
  EXPECT_DOUBLE_EQ(speed.memory.count(), 14e9);
  EXPECT_EQ(speed.call, Seconds(2e-6));
  ASSERT_EQ(speed.caches.size(), 1U);
  EXPECT_EQ(speed.caches[0].size, kMiB * 2);
  EXPECT_FALSE(speed.calibrated);
}

TEST(CatalogSpeed, rates_of_servers_are_read_by_rows) {
  const CatalogFile base = {"this-machine-2.yaml", R"(systole_catalog: 1
entries:
  this-machine-2:
    kind: cpu
    doc: "a CPU"
    calibrated: true
    facts:
      chain.f32: { value: 1 G/s, source: a, date: 2026-11-21 }
      kernel.f32: { value: 1 GFLOP/s, source: a, date: 2026-11-21 }
      elementary.f32: { value: 1 G/s, source: a, date: 2026-11-21 }
      matmul.f32: { value: 1 GFLOP/s, source: a, date: 2026-11-21 }
      memory.bandwidth: { value: 1 GB/s, source: a, date: 2026-11-21 }
      call: { value: 1 us, source: a, date: 2026-11-21 }
      serving.draw: { value: 0.1 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.16: { value: 1 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.16.cached: { value: 1 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.512.16: { value: 3 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.512.16.cached: { value: 4 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.512.4: { value: 5 G/s, source: a, date: 2026-11-21 }
      serving.product.i8.512.4.cached: { value: 6 G/s, source: a, date: 2026-11-21 }
)"};
  const Catalog catalog = Catalog::read(std::span(&base, 1)).value();
  const MachineSpeed speed = speed_of(*catalog.find("this-machine-2").value(), 2).value();
  EXPECT_EQ(speed.served.at(DType::i8).size(), 1U) << "those without a side are of an older calibration";
  const std::vector<ServedProducts>& products = speed.served.at(DType::i8).at(512);
  ASSERT_EQ(products.size(), 2U);
  EXPECT_EQ(products[0].rows, 4);
  EXPECT_DOUBLE_EQ(products[1].far.count(), 3e9);
  EXPECT_DOUBLE_EQ(products[1].near.count(), 4e9);
  EXPECT_DOUBLE_EQ(speed.draw.count(), 0.1e9);
}

TEST(CatalogSpeed, every_cpu_entry_makes_a_machine) {
  const Catalog catalog = builtin();
  int cpus = 0;
  for (const auto& [name, entry] : catalog.entries()) {
    if (entry.kind != "cpu") continue;
    ++cpus;
    EXPECT_TRUE(speed_of(entry, 2).ok()) << name;
  }
  EXPECT_GT(cpus, 0);
}

Graph products_and_a_chain(DType dtype) {
  Graph g("g");
  const Value x = g.input("x", Type(dtype, {512, 256})), w = g.input("w", Type(dtype, {256, 1024}));
  g.output("y", mul(tanh(contract(x, w, "ik,kn->in")), contract(x, w, "ik,kn->in")));
  return g;
}

// A chip's maker states two rates. All else takes the time of its bytes, and no ratio is given to a rate that nobody
// stated.
TEST(CatalogSpeed, every_chip_makes_a_machine_that_is_bounded_by_memory) {
  const Catalog catalog = builtin();
  int chips = 0;
  for (const auto& [name, entry] : catalog.entries()) {
    if ((entry.kind != "tpu" && entry.kind != "gpu") || !entry.facts.contains("matmul.bf16")) continue;
    SCOPED_TRACE(name);
    ++chips;
    const MachineSpeed speed = speed_of(entry, 1).value();
    EXPECT_FALSE(speed.calibrated);
    EXPECT_NE(speed.source.find("bounded by memory bandwidth"), std::string::npos) << speed.source;
    const double devices = entry.facts.contains("devices") ? entry.number("devices").value() : 1;
    EXPECT_DOUBLE_EQ(matmul_rate(speed, DType::bf16).count(), entry.flop_rate("matmul.bf16").value().count() / devices);
    EXPECT_FALSE(speed.matmul.contains(DType::f32));
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const TimeByClass time = graph_time(products_and_a_chain(dtype), speed, Bytes(1) * (1LL << 40));
      const double products = 2.0 * 2 * 512 * 256 * 1024 / matmul_rate(speed, DType::bf16).count();
      EXPECT_TRUE(std::isfinite(time.total().count()));
      EXPECT_GE(time[OpClass::contraction].count(), products);
      // tanh and mul each write their result, and read at most 12 bytes per element.
      const double element = 512.0 * 1024 * size_of(dtype) / speed.memory.count();
      EXPECT_GE(time[OpClass::elementwise].count(), 2 * element);
      EXPECT_LE(time[OpClass::elementwise].count(), 6 * element);
    }
    CatalogEntry without = entry;
    without.facts.erase("memory.bandwidth");
    EXPECT_FALSE(speed_of(without, 1).ok());
  }
  EXPECT_EQ(chips, 19);
}

TEST(CatalogSpeed, a_device_is_a_part_of_its_chip) {
  const Catalog catalog = builtin();
  const CatalogEntry& chip = *catalog.find("tpu7x").value();
  const MachineSpeed speed = speed_of(chip, 1).value();
  EXPECT_EQ(speed.name, "one of the 2 devices of tpu7x");
  EXPECT_DOUBLE_EQ(speed.memory.count(), chip.bytes_per_second("memory.bandwidth").value().count() / 2);
}

TEST(CatalogSpeed, what_a_chip_states_is_taken) {
  const Catalog catalog = builtin();
  CatalogEntry entry = *catalog.find("v5e").value();
  entry.facts["call"] = {3e-6, CatalogUnit::seconds, "test", "2026-11-22", {}};
  entry.facts["chain.f32"] = {1e12, CatalogUnit::per_second, "test", "2026-11-22", {}};
  entry.facts["matmul.f32"] = {5e13, CatalogUnit::flop_rate, "test", "2026-11-22", {}};
  const MachineSpeed speed = speed_of(entry, 1).value();
  EXPECT_EQ(speed.call, Seconds(3e-6));
  EXPECT_DOUBLE_EQ(speed.chain.count(), 1e12);
  EXPECT_DOUBLE_EQ(contraction_rate(speed, DType::f32).count(), 5e13);
}

// The facts of kernels that calibrate writes.
TEST(CatalogSpeed, kernels_products_and_steps_are_read) {
  const Catalog catalog = builtin();
  CatalogEntry entry = *catalog.find("cpu-avx2").value();
  entry.per = "machine";
  const auto fact = [&](const std::string& key, double value, CatalogUnit unit) {
    entry.facts[key] = {value, unit, "test", "2026-11-26", {}};
  };
  EXPECT_TRUE(speed_of(entry, 2)->steps.empty()) << "what is shipped has none";
  fact("step.bf16", 2e9, CatalogUnit::per_second);
  fact("function.gelu_tanh", 3e9, CatalogUnit::per_second);
  fact("kernel.layer_norm.f32", 4e9, CatalogUnit::per_second);
  fact("kernel.layer_norm.f32.row", 5e-9, CatalogUnit::seconds);
  fact("product.bf16.tn", 6e11, CatalogUnit::flop_rate);
  fact("product.bf16.tn.elements", 7e9, CatalogUnit::per_second);
  fact("memory.read", 8e9, CatalogUnit::bytes_per_second);
  fact("memory.write", 9e8, CatalogUnit::bytes_per_second);
  fact("cache.l2.write", 1e10, CatalogUnit::bytes_per_second);
  fact("serial", 0.25, CatalogUnit::number);
  const MachineSpeed speed = speed_of(entry, 2).value();
  EXPECT_EQ(speed.steps.at(DType::bf16).count(), 2e9);
  EXPECT_EQ(speed.functions.at("gelu_tanh").count(), 3e9);
  ASSERT_EQ(speed.kernels.size(), 1U) << "kernel.f32 is none of them";
  const KernelSpeed& norm = speed.kernels.at({"layer_norm", DType::f32});
  EXPECT_EQ(norm.elements.count(), 4e9);
  EXPECT_EQ(norm.row, Seconds(5e-9));
  EXPECT_EQ(speed.products.at({DType::bf16, ProductLayout::tn}).elements.count(), 7e9);
  EXPECT_EQ(speed.memory.count(), 8e9);
  EXPECT_EQ(speed.write.count(), 9e8);
  EXPECT_EQ(speed.caches[0].write.count(), 1e10);
  EXPECT_EQ(speed.serial, 0.25);
  fact("serial", 1.5, CatalogUnit::number);
  EXPECT_NE(speed_of(entry, 2).error().message.find("serial is 1.5"), std::string::npos);
  fact("serial", 1, CatalogUnit::number);
  fact("kernel.layer_norm.f33", 4e9, CatalogUnit::per_second);
  EXPECT_NE(speed_of(entry, 2).error().message.find("kernel.layer_norm.f33"), std::string::npos);
}

TEST(CatalogSpeed, a_fact_that_is_not_there_is_an_error) {
  const Catalog catalog = builtin();
  CatalogEntry entry = *catalog.find("cpu-avx2").value();
  EXPECT_FALSE(speed_of(entry, 0).ok());
  entry.facts.erase("call");
  const auto speed = speed_of(entry, 2);
  ASSERT_FALSE(speed.ok());
  EXPECT_NE(speed.error().message.find("call"), std::string::npos);
}

}  // namespace
}  // namespace systole
