// First workloads are valid, and their targets accept them, in each of their environments.
#include "operate/init/pattern.h"

#include <gtest/gtest.h>

#include "ground/catalog/offer.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

const GpuMachine kMachine{"g2-standard-4", "l4", "us-central1-a", "$0.71/h", "2026-07-30"};

FirstModel model_of(std::string file) {
  FirstModel model;
  model.text = {.files = {std::move(file)},
                .bytes = kMiB,
                .document = DocumentRule::blank_line,
                .documents = 100,
                .whole = true,
                .held_out = 0.05,
                .vocabulary = 1024,
                .bytes_per_token = 3.0};
  model.size = model_sizes().front();
  model.steps = 1000;
  return model;
}

struct FirstCase {
  Pattern pattern;
  bool text;
};

std::vector<FirstCase> first_cases() {
  std::vector<FirstCase> all;
  for (const Pattern pattern : patterns()) {
    if (pattern != Pattern::local) all.push_back({pattern, false});
    if (pattern != Pattern::linear) all.push_back({pattern, true});
  }
  return all;
}

class Patterns : public testing::TestWithParam<FirstCase> {};

TEST_P(Patterns, render_as_they_are) {
  const auto [pattern, of_text] = GetParam();
  const FirstModel model = model_of("my text.txt");
  const std::string text =
      first_workload({pattern, "first", of_text ? &model : nullptr, pattern == Pattern::gce ? &kMachine : nullptr})
          .value();
  for (const char* environment : {"", "dev", "prod"}) {
    Result<Workload> workload = read_workload(text, "first.yaml", {.environment = environment});
    ASSERT_TRUE(workload.ok()) << to_string(workload.error()) << text;
    EXPECT_EQ(workload->name, "first");
    const std::int64_t prod = of_text ? 4000 : 10000;
    const std::int64_t steps = std::string(environment) == "dev" ? 100 : *environment == '\0' ? 1000 : prod;
    EXPECT_EQ(workload->train.steps, steps);
    EXPECT_EQ(workload->data.train.files,
              of_text ? std::vector<std::string>{"my text.txt"} : std::vector<std::string>());
    if (target_of(pattern).empty()) continue;
    RenderRequest ask{.target = job_target_row_named(target_of(pattern)).value(), .workload = *workload};
    ask.workload_file = {to_yaml(*workload), std::string(64, '1')};
    ask.program_sha256 = std::string(64, '2');
    ask.version = "systole";
    ask.place = "here";
    ask.environment = environment;
    if (pattern == Pattern::kubernetes && ask.environment == "prod") {
      EXPECT_NE(render(ask).error().message.find("is production"), std::string::npos) << "by digest alone";
      workload->image = "registry.example/systole@sha256:" + std::string(64, 'a');
    }
    const Result<Rendered> rendered = render(ask);
    EXPECT_TRUE(rendered.ok()) << environment << ": " << to_string(rendered.error());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Patterns, testing::ValuesIn(first_cases()), [](const auto& each) {
  return std::string(name_of(each.param.pattern)) + (each.param.text ? "_with_a_text" : "");
});

TEST(GcePattern, is_one_machine_with_a_gpu_at_a_dated_price) {
  const std::string text = first_workload({Pattern::gce, "My job", nullptr, &kMachine}).value();
  const Workload workload = read_workload(text, "first.yaml").value();
  EXPECT_EQ(workload.gcloud.create, GcloudSpec::Create::instances);
  EXPECT_EQ(workload.gcloud.name, "my-job");
  EXPECT_EQ(workload.gcloud.machine, "g2-standard-4");
  EXPECT_EQ(workload.gcloud.zone, "us-central1-a");
  EXPECT_EQ(workload.gcloud.options.at("scopes").find("cloud-platform"), std::string::npos) << "no more than it needs";
  EXPECT_NE(text.find("list of 2026-07-30 it costs $0.71/h"), std::string::npos) << text;
  EXPECT_EQ(text.find("GCE_"), std::string::npos) << text;
  const Workload spot = read_workload(text, "first.yaml", {.environment = "spot"}).value();
  EXPECT_EQ(spot.resources.provisioning, Provisioning::spot);
}

TEST(GcePattern, takes_the_cheapest_machine_of_the_catalog) {
  const Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  CatalogTables tables = CatalogTables::read().value();
  const GpuMachine machine = cheapest_gpu_machine(tables, catalog).value();
  EXPECT_NE(type_named(tables.machines().value(), machine.machine), nullptr) << machine.machine;
  EXPECT_EQ(catalog.find(machine.accelerator).value()->kind, "gpu");
  std::optional<DollarsPerHour> lowest;
  for (const MachineType& type : tables.machines().value()) {
    if (type.accelerators != 1 || !type.host.empty() || catalog.find(type.accelerator).value()->kind != "gpu") continue;
    const OfferFilter filter{.machine = type.name, .provisioning = {Provisioning::on_demand}};
    for (const Offer& offer : find_offers(tables, catalog, filter).value())
      if (offer.price.known() && !offer.zone.empty() && is_date(offer.price.dated.date) &&
          (!lowest || *offer.price.amount < *lowest))
        lowest = offer.price.amount;
  }
  ASSERT_TRUE(lowest.has_value());
  EXPECT_EQ(machine.price, to_string(*lowest)) << machine.machine;
  EXPECT_EQ(machine.price_date.size(), 10U) << machine.price_date;
}

TEST(PatternNames, are_told_apart) {
  EXPECT_EQ(pattern_named("slurm").value(), Pattern::slurm);
  EXPECT_EQ(pattern_named("slrm").error().hint, "did you mean 'slurm'?");
  EXPECT_EQ(pattern_named("vertex").error().kind, ErrorKind::unsupported);
}

TEST(PatternNames, of_runs_are_text_and_nothing_else) {
  for (const char* name : {"a: b", "it's", "NO", "1e3", "$(x)1"}) {
    const std::string text = first_workload({Pattern::linear, name}).value();
    EXPECT_EQ(read_workload(text, "f").value().name, name);
    EXPECT_TRUE(read_workload(text, "f").value().command.empty());
  }
  for (const char* name : {"!!", "x\ncommand: [rm]", "a/b"})
    EXPECT_EQ(first_workload({Pattern::linear, name}).error().kind, ErrorKind::invalid) << name;
}

TEST(PatternFiles, are_text_and_nothing_else) {
  for (const char* file : {"a, b}.txt", "it's.txt", "a: b.txt", "#1.txt", "- x.txt", "yes"}) {
    const FirstModel model = model_of(file);
    const std::string text = first_workload({Pattern::local, "first", &model}).value();
    EXPECT_EQ(read_workload(text, "f").value().data.train.files, std::vector<std::string>{file}) << text;
  }
}

}  // namespace
}  // namespace systole
