#include "operate/launch/chaos.h"

#include <map>

#include "operate/launch/testing/launch_fixture.h"

namespace systole {
namespace {

constexpr const char* kFile = R"(systole-chaos: 1
seed: 7
mean_time_between: 40s
most: 3
spare: 1s
kinds:
  kill: 3
  stop: { weight: 1, for: 2s }
  delay: { weight: 0 }
)";

TEST(Hazards, are_read) {
  const HazardModel model = read_hazards(kFile, "h.yaml").value();
  EXPECT_EQ(model.seed, 7u);
  EXPECT_EQ(model.mean_time_between, Seconds(40.0));
  EXPECT_EQ(model.most, 3);
  EXPECT_EQ(model.spare, Seconds(1.0));
  ASSERT_EQ(model.kinds.size(), 3u);
  EXPECT_EQ(model.kinds[1].what, HazardKind::What::stop);
  EXPECT_EQ(model.kinds[1].lasts, Seconds(2.0));
}

TEST(Hazards, what_cannot_be_is_refused_at_its_place) {
  for (const auto& [text, place, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"seed: 1\n", "h.yaml:1:1", "'systole-chaos' is missing"},
           {"systole-chaos: 2\n", "h.yaml:1:16", "hazards of version 2"},
           {"systole-chaos: 1\n", "h.yaml:1:1", "'mean_time_between' is missing"},
           {"systole-chaos: 1\nmean_time_betwen: 3s\n", "h.yaml:2:1", "no 'mean_time_betwen'"},
           {"systole-chaos: 1\nmean_time_between: soon\n", "h.yaml:2:20", "soon"},
           {"systole-chaos: 1\nmean_time_between: 0\n", "h.yaml:2:20", "a time above 0"},
           {"systole-chaos: 1\nmean_time_between: 3s\nkinds: { kil: 1 }\n", "h.yaml:3:10", "no hazard 'kil'"},
           {"systole-chaos: 1\nmean_time_between: 3s\nkinds: { kill: { for: 1s } }\n", "h.yaml:3:23", "no length"},
           {"systole-chaos: 1\nmean_time_between: 3s\nkinds: { kill: 0 }\n", "h.yaml:3:8", "above 0"},
           {"systole-chaos: 1\nmean_time_between: 3s\nkinds: { kill: -1 }\n", "h.yaml:3:16", "0 or more"},
           {"systole-chaos: 1\nmean_time_between: 3s\nmost: many\n", "h.yaml:3:7", "many"},
           {"- kill\n", "h.yaml:1:1", "a map"},
       }) {
    const Result<HazardModel> refused = read_hazards(text, "h.yaml");
    ASSERT_FALSE(refused.ok()) << text;
    const std::string told = to_string(refused.error());
    EXPECT_NE(told.find(says), std::string::npos) << told;
    EXPECT_NE(told.find(place), std::string::npos) << told;
  }
}

// Eight ranks have eight times as many hazards as one, and kinds occur by their weights.
TEST(Hazards, come_as_often_as_the_model_says) {
  const HazardModel model = read_hazards(kFile, "h.yaml").value();
  for (const int ranks : {1, 8}) {
    Seconds sum;
    std::map<HazardKind::What, int> kinds;
    std::map<int, int> victims;
    constexpr int kDraws = 4000;
    for (std::uint64_t n = 0; n < kDraws; ++n) {
      const Hazard drawn = hazard(model, n, ranks);
      sum += drawn.after;
      ++kinds[drawn.kind.what];
      ++victims[static_cast<int>(drawn.which * ranks)];
    }
    EXPECT_NEAR(sum.count() / kDraws, 40.0 / ranks, 0.05 * 40.0 / ranks);
    EXPECT_NEAR(kinds[HazardKind::What::kill], 0.75 * kDraws, 0.03 * kDraws);
    EXPECT_EQ(kinds[HazardKind::What::delay], 0);
    EXPECT_EQ(victims.size(), static_cast<std::size_t>(ranks));
  }
}

class Rehearsal : public LaunchFixture {};

TEST_F(Rehearsal, kills_as_many_as_it_may_and_the_job_ends_well) {
  HazardModel model = read_hazards(kFile, "h.yaml").value();
  model.mean_time_between = Seconds(0.2);
  model.spare = Seconds();
  model.kinds = {{HazardKind::What::kill, 1, {}}, {HazardKind::What::delay, 1, Seconds(0.05)}};
  Chaos chaos(model, options_.tell);
  script("sleep 1", 2);
  options_.chaos = &chaos;
  options_.membership.failures_until_left_out = 1000;
  EXPECT_EQ(run(), (LaunchOutcome{0, "2 ranks finished"}));
  EXPECT_EQ(chaos.done(), 3);
  EXPECT_TRUE(has(told_, "(3 of 3)")) << told_;
}

}  // namespace
}  // namespace systole
