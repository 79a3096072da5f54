#include "predict/perf/catalog_speed.h"

#include <gtest/gtest.h>

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

TEST(CatalogSpeed, every_cpu_entry_makes_a_machine) {
  const Catalog catalog = builtin();
  for (const auto& [name, entry] : catalog.entries()) {
    EXPECT_TRUE(entry.kind != "cpu" || speed_of(entry, 2).ok()) << name;
  }
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
