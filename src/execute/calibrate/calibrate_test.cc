#include "execute/calibrate/calibrate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>

#include "describe/ops/ops.h"
#include "execute/backends/reference/reference.h"
#include "execute/calibrate/micro_run.h"

namespace systole {
namespace {

TEST(Sample, lower_quarter_and_the_middle_half) {
  const Sample s = sample_of({Seconds(4.0), Seconds(1.0), Seconds(2.0), Seconds(3.0), Seconds(100.0)});
  EXPECT_EQ(s.time, Seconds(2.0));
  EXPECT_DOUBLE_EQ(s.spread, 2.0 / 2.0);
  EXPECT_EQ(s.runs, 5);
}

TEST(MicroRun, runs_an_op_as_often_as_it_says) {
  const std::unique_ptr<Device> device = make_reference_device();
  Graph g("g");
  const Type type(DType::f32, {4, 8});
  g.output("y", mul(g.input("x", type), g.input("x2", type)));
  const std::unique_ptr<MicroRun> run = MicroRun::make(*device, std::move(g)).value();
  EXPECT_EQ(run->work().flops, 32);
  const std::unique_ptr<Clock> clock = real_clock();
  const Sample s = run->measure(*clock, Seconds(0.01)).value();
  EXPECT_GE(s.runs, 3);
  EXPECT_GT(s.time, Seconds());
}

TEST(MicroRun, a_device_that_times_no_ops_is_told) {
  const std::unique_ptr<Device> device = make_reference_device();
  Graph g("g");
  g.output("y", exp(g.input("x", Type(DType::f32, {4}))));
  const std::unique_ptr<MicroRun> run = MicroRun::make(*device, std::move(g)).value();
  const std::unique_ptr<Clock> clock = real_clock();
  EXPECT_EQ(run->measure_op(*clock, Seconds(0.01), "exp").error().kind, ErrorKind::unsupported);
}

TEST(Calibrate, a_file_of_the_disk_is_gone_afterwards) {
  const std::string folder = testing::TempDir();
  const std::unique_ptr<Clock> clock = real_clock();
  const std::vector<CalibratedFact> facts = measure_disk(folder, 2 * kMiB, *clock).value();
  ASSERT_EQ(facts.size(), 3U);
  for (const CalibratedFact& fact : facts) EXPECT_GT(fact.value, 0) << fact.key;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_EQ(entry.path().filename().string().find("systole-calibrate"), std::string::npos);
  EXPECT_EQ(measure_disk("/nowhere", 2 * kMiB, *clock).error().kind, ErrorKind::not_found);
}

TEST(Calibrate, links_between_processes_of_this_host) {
  const std::unique_ptr<Clock> clock = real_clock();
  const Seconds began = clock->now();
  const std::vector<CalibratedFact> facts = measure_links(Seconds(0.2), *clock).value();
  EXPECT_LT(clock->now() - began, Seconds(20.0));
  ASSERT_EQ(facts.size(), 10U);
  EXPECT_EQ(facts[0].key, "link.shm.2.latency");
  EXPECT_EQ(facts[7].key, "link.tcp.4.bandwidth");
  EXPECT_EQ(facts[9].key, "link.tls.2.bandwidth");
  for (const CalibratedFact& fact : facts) {
    const bool latency = fact.key.ends_with(".latency");
    EXPECT_GT(fact.value, latency ? 1e-8 : 1e6) << fact.key;
    EXPECT_LT(fact.value, latency ? 1.0 : 1e13) << fact.key;
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// The written text is a valid catalog and reads back with the same numbers.
TEST(Calibrate, writes_a_catalog_that_reads_back) {
  const std::vector<CalibratedFact> facts = {
      {"threads", 2, CatalogUnit::number, 0, "threads that a run uses"},
      {"matmul.bf16", 3.85e11, CatalogUnit::flop_rate, 0.031, "contract 2048 x 2048 x 2048, median of 7"},
      {"elementary.f32", 2e9, CatalogUnit::per_second, 0, "exp"},
      {"memory.bandwidth", 1.4e10, CatalogUnit::bytes_per_second, 0.1, "x + y"},
      {"cache.l2.size", 4 << 20, CatalogUnit::bytes, 0, "what the system says"},
      {"call", 1.5e-6, CatalogUnit::seconds, 0.5, "neg of 16 numbers"}};
  const CatalogFile file{"this-machine-2.yaml",
                         catalog_text(facts, calibrated_entry(2), "a CPU, avx512, 2 threads", "2026-11-21")};
  const Catalog catalog = Catalog::read(std::span(&file, 1)).value();
  const CatalogEntry* entry = catalog.find("this-machine-2").value();
  EXPECT_TRUE(entry->calibrated);
  EXPECT_EQ(entry->doc, "a CPU, avx512, 2 threads");
  EXPECT_DOUBLE_EQ(entry->flop_rate("matmul.bf16")->count(), 3.85e11);
  EXPECT_EQ(entry->bytes("cache.l2.size")->count(), 4 << 20);
  EXPECT_DOUBLE_EQ(entry->seconds("call")->count(), 1.5e-6);
  EXPECT_EQ(entry->facts.at("matmul.bf16").source, "contract 2048 x 2048 x 2048, median of 7, spread 3.1%");
  EXPECT_EQ(entry->date(), "2026-11-21");
}

}  // namespace
}  // namespace systole
