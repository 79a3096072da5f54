// A plan is asked for again and again while a workload is written: it must cost nothing. It maps no library that only
// a run needs.

#include <gtest/gtest.h>

#include "laws/process_job.h"
#include "laws/still_process.h"

namespace systole::laws {
namespace {

TEST(PlanIsLight, it_maps_neither_oneDNN_nor_Gloo) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"plan", "job.yaml"}).exit.code, 0);  // then its data is there, and the next makes none
  const std::string maps = mapped_at_its_end(shop.command({"plan", "job.yaml"})).value();
  EXPECT_NE(maps.find("/libstdc++.so"), maps.npos) << maps;
  EXPECT_EQ(maps.find("dnnl"), maps.npos) << maps;
  EXPECT_EQ(maps.find("gloo"), maps.npos) << maps;
}

#ifdef SYSTOLE_HAS_CPU
// What the tests below run: bf16 may have its products from elsewhere, and what is exact has its own.
std::vector<std::string> job(const char* verb) {
  return {verb, "job.yaml", "--set", "train.steps=2", "--set", "train.precision=f32", "--set", "train.exact=false"};
}

// What the test above looks for is there to be found.
TEST(PlanIsLight, a_run_maps_oneDNN) {
  const Workshop shop;
  // Its data is there: while another process makes it, a run stands still without oneDNN.
  ASSERT_EQ(shop.systole(job("plan")).exit.code, 0);
  const std::string maps = mapped_at_its_end(shop.command(job("run"))).value();
  EXPECT_NE(maps.find("/libdnnl.so"), maps.npos) << maps;
}

// The library is looked for when it is needed: its absence is an error that names the package, and plans do without.
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
