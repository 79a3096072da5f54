#include "predict/perf/compiled_time.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

const ScheduleSpeed kSpeed{.cycles_per_second = 1000,
                           .flops = 100,
                           .bytes = 10,
                           .elements = 4,
                           .results = 2,
                           .filled = 5,
                           .scores = 1,
                           .block = 20,
                           .call = 7,
                           .beside = 0.5};

TEST(CompiledTime, a_product_hides_what_is_shorter_in_part) {
  CompiledKernel product{.op_class = OpClass::contraction, .runs = 3, .flops = 10000, .results = 40, .bytes = 100};
  EXPECT_DOUBLE_EQ(compiled_time(product, kSpeed).count(), 3 * (7 + 100 + 0.5 * (20 + 10)) / 1000);
  product.results = 400;
  EXPECT_DOUBLE_EQ(compiled_time(product, kSpeed).count(), 3 * (7 + 200 + 0.5 * (100 + 10)) / 1000);
  product.streamed = 1000;  // less than reading each operand once
  EXPECT_DOUBLE_EQ(compiled_time(product, kSpeed).count(), 3 * (7 + 200 + 0.5 * (100 + 10)) / 1000);
  product.streamed = 60000;
  EXPECT_DOUBLE_EQ(compiled_time(product, kSpeed).count(), 3 * (7 + 300 + 0.5 * (100 + 200)) / 1000);
}

TEST(CompiledTime, a_pass_starts_and_moves_and_works) {
  const CompiledKernel pass{.op_class = OpClass::optimizer, .calls = 2, .elements = 80, .filled = 15, .bytes = 300};
  EXPECT_DOUBLE_EQ(compiled_time(pass, kSpeed).count(), (2 * 7 + 20 + 3 + 30) / 1000.0);
}

TEST(CompiledTime, of_attention_the_longer_of_products_and_scores_and_what_it_sums_in) {
  const CompiledKernel pair{.op_class = OpClass::attention, .flops = 1000, .elements = 8, .scores = 30};
  EXPECT_DOUBLE_EQ(compiled_time(pair, kSpeed).count(), (7 + 30 + 0.5 * 10 + 2) / 1000);
}

TEST(CompiledTime, is_summed_by_class) {
  const CompiledKernel kernels[] = {{.op_class = OpClass::optimizer, .bytes = 10},
                                    {.op_class = OpClass::optimizer, .runs = 2, .bytes = 20},
                                    {.op_class = OpClass::movement, .calls = 0, .elements = 4}};
  const TimeByClass time = compiled_time(kernels, kSpeed);
  EXPECT_DOUBLE_EQ(time[OpClass::optimizer].count(), (8 + 2 * 9) / 1000.0);
  EXPECT_DOUBLE_EQ(time[OpClass::movement].count(), 0.001);
  EXPECT_DOUBLE_EQ(time.total().count(), 0.027);
}

Catalog catalog_with(const std::string& facts) {
  return Catalog::read(std::vector<CatalogFile>{
                           {"test", "systole_catalog: 1\nentries:\n  chip:\n    kind: tpu\n    facts:\n" + facts}})
      .value();
}

std::string fact(const std::string& key, const std::string& value) {
  return "      " + key + ": { value: " + value + ", source: s, date: 2026-11-22 }\n";
}

TEST(CompiledTime, speeds_are_of_one_device_and_cycle) {
  std::string facts = fact("clock", "2 G/s") + fact("matmul.bf16", "400 TFLOP/s") +
                      fact("memory.bandwidth", "800 GB/s") + fact("devices", "2");
  EXPECT_FALSE(schedule_speed_of(catalog_with(facts).entries().at("chip")).value().has_value()) << "none are known";
  facts += fact("schedule.elements", "90") + fact("schedule.results", "80") + fact("schedule.filled", "45") +
           fact("schedule.scores", "60") + fact("schedule.call", "2000") + fact("schedule.block", "1280");
  const Catalog lacks = catalog_with(facts);
  EXPECT_EQ(schedule_speed_of(lacks.entries().at("chip")).error().kind, ErrorKind::not_found) << "schedule.beside";
  const Catalog whole = catalog_with(facts + fact("schedule.beside", "0.3"));
  const ScheduleSpeed speed = schedule_speed_of(whole.entries().at("chip")).value().value();
  EXPECT_DOUBLE_EQ(speed.flops, 100000);
  EXPECT_DOUBLE_EQ(speed.bytes, 200);
  EXPECT_DOUBLE_EQ(speed.elements, 90);
  EXPECT_DOUBLE_EQ(speed.beside, 0.3);
}

}  // namespace
}  // namespace systole
