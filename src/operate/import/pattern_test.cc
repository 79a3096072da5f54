// First workloads are workloads that their targets take, in each of their environments.
#include "operate/import/pattern.h"

#include <gtest/gtest.h>

#include "operate/render/render.h"

namespace systole {
namespace {

class Patterns : public testing::TestWithParam<Pattern> {};

TEST_P(Patterns, render_as_they_are) {
  const std::string text = first_workload(GetParam(), "first").value();
  for (const char* environment : {"", "dev", "prod"}) {
    Result<Workload> workload = read_workload(text, "first.yaml", {.environment = environment});
    ASSERT_TRUE(workload.ok()) << to_string(workload.error());
    EXPECT_EQ(workload->name, "first");
    const std::int64_t steps = std::string(environment) == "dev" ? 100 : *environment == '\0' ? 1000 : 10000;
    EXPECT_EQ(workload->train.steps, steps);
    if (target_of(GetParam()).empty()) continue;
    RenderAsk ask{.target = render_target_named(target_of(GetParam())).value(), .workload = *workload};
    ask.workload_file = {to_yaml(*workload), std::string(64, '1')};
    ask.program_sha256 = std::string(64, '2');
    ask.version = "systole";
    ask.place = "here";
    ask.environment = environment;
    if (GetParam() == Pattern::kubernetes && ask.environment == "prod") {
      EXPECT_NE(render(ask).error().message.find("is production"), std::string::npos) << "by digest alone";
      workload->image = "registry.example/systole@sha256:" + std::string(64, 'a');
    }
    const Result<Rendered> rendered = render(ask);
    EXPECT_TRUE(rendered.ok()) << environment << ": " << to_string(rendered.error());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Patterns, testing::ValuesIn(patterns().begin(), patterns().end()),
                         [](const auto& each) { return name_of(each.param); });

TEST(PatternNames, are_told_apart) {
  EXPECT_EQ(pattern_named("slurm").value(), Pattern::slurm);
  EXPECT_EQ(pattern_named("slrm").error().hint, "did you mean 'slurm'?");
  EXPECT_EQ(pattern_named("vertex").error().kind, ErrorKind::unsupported);
}

TEST(PatternNames, of_runs_are_text_and_nothing_else) {
  for (const char* name : {"a: b", "it's", "NO", "1e3", "$(x)1"}) {
    const std::string text = first_workload(Pattern::local, name).value();
    EXPECT_EQ(read_workload(text, "f").value().name, name);
    EXPECT_TRUE(read_workload(text, "f").value().command.empty());
  }
  for (const char* name : {"!!", "x\ncommand: [rm]", "a/b"})
    EXPECT_EQ(first_workload(Pattern::local, name).error().kind, ErrorKind::invalid) << name;
}

}  // namespace
}  // namespace systole
