#include "ground/catalog/quota.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

std::string metrics(QuotaOf of, const char* machine, const char* accelerator, Provisioning terms) {
  static CatalogTables tables = CatalogTables::read().value();
  std::string text;
  for (const QuotaRow* row : quotas_of(tables.quotas().value(), of, machine, accelerator, terms))
    text += row->metric + (row->dimension.empty() ? "" : "{" + row->dimension + "}") + (row->global ? " global" : "") +
            "\n";
  return text;
}

// From the lists: the quota of a machine depends on its family and on the terms.
TEST(Quotas, what_a_machine_spends) {
  using enum Provisioning;
  EXPECT_EQ(metrics(QuotaOf::gpu, "n1-standard-4", "t4", on_demand), "GPUS_ALL_REGIONS global\nNVIDIA_T4_GPUS\n");
  EXPECT_EQ(metrics(QuotaOf::gpu, "a3-highgpu-8g", "h100", on_demand),
            "GPUS_ALL_REGIONS global\nGPUS_PER_GPU_FAMILY{gpu_family=NVIDIA_H100}\n");
  EXPECT_EQ(metrics(QuotaOf::gpu, "a3-highgpu-8g", "h100", spot), "PREEMPTIBLE_NVIDIA_H100_GPUS\n");
  EXPECT_EQ(metrics(QuotaOf::gpu, "a3-highgpu-8g", "h100", flex_start), "PREEMPTIBLE_NVIDIA_H100_GPUS\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct5lp-hightpu-4t", "v5e", on_demand), "TPU_LITE_PODSLICE_V5\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct5l-hightpu-4t", "v5e", on_demand), "TPU_LITE_DEVICE_V5\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct6e-standard-4t", "v6e", spot), "PREEMPTIBLE_TPU_V6E\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct5p-hightpu-4t", "v5p", on_demand), "TPU_V5P\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct5p-hightpu-4t", "v5p", spot), "PREEMPTIBLE_TPU_V5P\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct5p-hightpu-4t", "v5p", flex_start), "PREEMPTIBLE_TPU_V5P\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct4p-hightpu-4t", "v4", on_demand), "TPU_PODSLICE_V4\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct4p-hightpu-4t", "v4", spot), "PREEMPTIBLE_TPU_PODSLICE_V4\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct3p-hightpu-4t", "v3", on_demand), "TPUS_PER_TPU_FAMILY{tpu_family=CT3P}\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "ct6e-standard-4t", "v6e", on_demand), "TPUS_PER_TPU_FAMILY{tpu_family=CT6E}\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "tpu7x-standard-4t", "tpu7x", on_demand), "TPUS_PER_TPU_FAMILY{tpu_family=tpu7x}\n");
  EXPECT_EQ(metrics(QuotaOf::tpu, "tpu7x-standard-4t", "tpu7x", spot), "") << "no list names it";
  EXPECT_EQ(metrics(QuotaOf::vcpu, "a2-highgpu-8g", "a100-40gb", on_demand), "A2_CPUS\n");
  EXPECT_EQ(metrics(QuotaOf::vcpu, "n1-standard-4", "", on_demand), "CPUS\n");
  EXPECT_EQ(metrics(QuotaOf::vcpu, "a3-highgpu-8g", "h100", on_demand), "CPUS_PER_VM_FAMILY{vm_family}\n");
}

// `default` is a number, and `usual` contains it in words.
TEST(Quotas, defaults_are_among_what_is_usual) {
  CatalogTables tables = CatalogTables::read().value();
  int known = 0;
  for (const QuotaRow& row : tables.quotas().value()) {
    if (!row.most_unasked) continue;
    EXPECT_NE(row.usual.find(std::to_string(*row.most_unasked)), std::string::npos) << row.metric << ": " << row.usual;
    ++known;
  }
  EXPECT_EQ(known, 25);
}

// These sources name metrics, but not the limits of a project.
TEST(Quotas, no_default_is_of_a_source_that_names_metrics_alone) {
  CatalogTables tables = CatalogTables::read().value();
  int named = 0;
  for (const QuotaRow& row : tables.quotas().value()) {
    const std::string& source = row.dated.source;
    const bool metrics_alone = source.starts_with("compute API v1: Quota.metric") ||
                               source.ends_with("accelerator_quota_mapping.csv") ||
                               source == "a public probe of quotas";
    EXPECT_FALSE(metrics_alone && row.most_unasked) << row.metric;
    named += metrics_alone;
  }
  EXPECT_EQ(named, 21);
}

// It is printed after "usually".
TEST(Quotas, what_is_usual_begins_with_a_number) {
  CatalogTables tables = CatalogTables::read().value();
  for (const QuotaRow& row : tables.quotas().value()) {
    const std::string plain = row.usual.starts_with("more than ") ? row.usual.substr(10) : row.usual;
    EXPECT_TRUE(plain.empty() || (plain[0] >= '0' && plain[0] <= '9')) << row.metric << ": " << row.usual;
    EXPECT_FALSE(plain.ends_with(" seen")) << row.metric << ": " << row.usual;
  }
}

TEST(Quotas, a_row_that_does_not_hold_says_where) {
  const CsvTable table =
      CsvTable::read("metric,of,unit,terms,source,date\nX,gpus,GPUs,on_demnd,me,2026-11-01\n", "q.csv").value();
  std::vector<Error> errors;
  TableRow row(table, 0, false, errors);
  read_quota(row);
  const std::string said = to_string(first_of(std::move(errors)).error());
  for (const char* part : {"q.csv:2:3: ", "q.csv:2:13: error: 'on_demnd' is no way to have a machine", "on_demand"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

}  // namespace
}  // namespace systole
