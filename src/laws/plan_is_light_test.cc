// A plan is requested repeatedly while a workload is written, so it must be cheap. It maps no library that only a run
// needs.

#include <gtest/gtest.h>

#include "laws/process_job.h"
#include "laws/still_process.h"

namespace systole::laws {
namespace {

TEST(PlanIsLight, it_maps_neither_oneDNN_nor_Gloo_nor_TLS) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"plan", "job.yaml"}).exit.code, 0);  // afterwards its data exists
  const std::string maps = mapped_at_its_end(shop.command({"plan", "job.yaml"})).value();
  EXPECT_NE(maps.find("/libstdc++.so"), maps.npos) << maps;
  EXPECT_EQ(maps.find("dnnl"), maps.npos) << maps;
  EXPECT_EQ(maps.find("gloo"), maps.npos) << maps;
  EXPECT_EQ(maps.find("libssl"), maps.npos) << maps;
}

constexpr const char* kLinear = R"(systole: 1
name: line
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 16 }
train: { batch: 8, steps: 2, optimizer: { kind: sgd, rate: 0.05 }, precision: f32 }
)";

// A tokenizer's library is optional: if it is missing, the error names the package, and other jobs run without it.
TEST(PlanIsLight, without_SentencePiece_a_text_names_the_package_and_another_job_runs) {
  const Workshop shop;
  shop.write("line.yaml", kLinear);
  EXPECT_EQ(mapped_at_its_end(shop.command({"plan", "line.yaml"})).value().find("sentencepiece"), std::string::npos);
  ASSERT_EQ(shop.systole({"plan", "job.yaml"}).exit.code, 0);
  EXPECT_NE(mapped_at_its_end(shop.command({"plan", "job.yaml"})).value().find("/libsentencepiece.so"),
            std::string::npos)
      << "it is there to be found";
  for (const char* library : {"libsentencepiece.so.0", "libsentencepiece_train.so.0"}) shop.write(library, "none");
  const auto without = [&shop](std::vector<std::string> words) {
    Command command = shop.command(std::move(words));
    command.env = {{"LD_LIBRARY_PATH", shop.path("")}};
    return run_captured(command).value();
  };
  const Captured line = without({"run", "line.yaml"});
  EXPECT_EQ(line.exit.code, 0) << line.err;
  for (const char* folder : {"data", "data-2"}) {  // existing, and to be built
    const Captured text = without({"plan", "job.yaml", "--set", fmt::format("data.folder={}", folder)});
    EXPECT_EQ(text.exit.code, 3) << text.err;
    EXPECT_NE(text.err.find("SentencePiece's, which cannot be loaded"), std::string::npos) << text.err;
    EXPECT_NE(text.err.find("hint: apt-get install libsentencepiece0"), std::string::npos) << text.err;
  }
}

#ifdef SYSTOLE_HAS_CPU
// The job of the tests below: for bf16 the library may compute the products, exact training has its own kernels.
std::vector<std::string> job(const char* verb) {
  return {verb, "job.yaml", "--set", "train.steps=2", "--set", "train.precision=f32", "--set", "train.exact=false"};
}

// The test above can fail: a run maps the library.
TEST(PlanIsLight, a_run_maps_oneDNN) {
  const Workshop shop;
  // The data exists: while another process builds it, a run waits without oneDNN.
  ASSERT_EQ(shop.systole(job("plan")).exit.code, 0);
  const std::string maps = mapped_at_its_end(shop.command(job("run"))).value();
  EXPECT_NE(maps.find("/libdnnl.so"), maps.npos) << maps;
}

// The library is loaded on demand: if it is missing, the error names the package, and plans work without it.
TEST(PlanIsLight, without_oneDNN_a_run_names_the_package_and_a_plan_is_made) {
  const Workshop shop;
  shop.write("libdnnl.so.2", "no library");
  Command plan = shop.command(job("plan")), run = shop.command(job("run"));
  for (Command* command : {&plan, &run}) command->env = {{"LD_LIBRARY_PATH", shop.path("")}};
  EXPECT_EQ(run_captured(plan).value().exit.code, 0);
  const Captured refused = run_captured(run).value();
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("oneDNN"), refused.err.npos) << refused.err;
  EXPECT_NE(refused.err.find("apt-get install libdnnl2"), refused.err.npos) << refused.err;
}
#endif

}  // namespace
}  // namespace systole::laws
