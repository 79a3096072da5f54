#include "operate/doctor/devices.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

RuntimeFacts tpus(int count) {
  RuntimeFacts runtime{"tpu", "tools/xla-plugins tpu", true, {}, {}};
  for (int i = 0; i < count; ++i) runtime.devices.push_back({"TPU v5 lite", "v5e", Bytes(16) * (1 << 30)});
  return runtime;
}

std::vector<Finding> judged(const RuntimeFacts& runtime, std::int64_t ranks = 1, const std::string& wanted = "",
                            bool asked = true) {
  return examine_devices({{runtime}, ranks, wanted, asked});
}

TEST(DoctorDevices, as_many_as_ranks) {
  const std::vector<Finding> findings = judged(tpus(4), 2);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].text, "4 × TPU v5 lite (v5e), 16.0 GiB each");
  EXPECT_EQ(findings[1].text, "tpu 0: TPU v5 lite");
  EXPECT_EQ(findings[2].name, "rank 1");
  for (const Finding& finding : findings) EXPECT_EQ(finding.verdict, Verdict::ok) << finding.text;
}

TEST(DoctorDevices, none_and_too_few) {
  RuntimeFacts absent = tpus(0);
  absent.there = false;
  EXPECT_EQ(judged(absent, 1, "", false)[0].verdict, Verdict::warn);
  EXPECT_EQ(judged(absent, 1, "", false).size(), 1U);
  EXPECT_EQ(judged(absent)[0].verdict, Verdict::fail);
  EXPECT_EQ(judged(absent)[0].hint, "tools/xla-plugins tpu");
  RuntimeFacts broken = tpus(0);
  broken.problem = "its process said nothing for 60 s";
  EXPECT_EQ(judged(broken)[0].text, "none: its process said nothing for 60 s");
  const std::vector<Finding> few = judged(tpus(1), 2);
  ASSERT_EQ(few.size(), 3U);
  EXPECT_EQ(few[1].verdict, Verdict::ok);
  EXPECT_EQ(few[2].verdict, Verdict::fail);
  EXPECT_EQ(few[2].text, "none: tpu sees 1 device, and there are 2 ranks");
  EXPECT_EQ(few[2].hint, "--ranks 1");
}

TEST(DoctorDevices, the_wrong_kind) {
  EXPECT_EQ(judged(tpus(1), 1, "v6e")[1].text, "tpu 0: TPU v5 lite, the wrong kind: v6e is wanted");
  EXPECT_EQ(judged(tpus(1), 1, "v6e")[1].verdict, Verdict::fail);
  EXPECT_EQ(judged(tpus(1), 1, "v5e")[1].verdict, Verdict::ok);
  RuntimeFacts mixed = tpus(2);
  mixed.devices[1] = {"TPU v6 lite", "v6e", {}};
  EXPECT_EQ(judged(mixed, 2)[2].text, "tpu 1: TPU v6 lite, the wrong kind: rank 0 has a TPU v5 lite");
  RuntimeFacts unknown = tpus(1);
  unknown.devices[0] = {"TPU v99", "", {}};
  EXPECT_EQ(judged(unknown)[1].verdict, Verdict::warn);
}

}  // namespace
}  // namespace systole
