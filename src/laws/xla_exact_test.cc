// resume-is-exact through XLA: with an equal device, plugin and executable a killed run ends with the bits of an
// undisturbed one, on one device and on a mesh; with others it is refused.

#include <gtest/gtest.h>
#include <map>

#include <bit>
#include <csignal>

#include "laws/xla_runs.h"

namespace systole::laws {
namespace {

constexpr int kSteps = 6;

struct ExactRun {
  std::string state;
  std::vector<std::uint64_t> losses, norms;  // as bits
  bool operator==(const ExactRun&) const = default;
};

class XlaExact : public XlaRuns {
 protected:
  Captured begin(const std::string& folder, const std::string& mesh, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"--set", "train.exact=true", "--set", "train.logical_shards=4",
                                      "--set", "mesh=" + mesh,     "--set", "checkpoint.every=2"};
    words.insert(words.end(), more.begin(), more.end());
    return run("xla-cpu", folder, "f32", kSteps, std::move(words));
  }
  Captured go_on(const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"resume", folder, "--device", "xla-cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return systole(std::move(words));
  }
  ExactRun end_of(const std::string& folder) const {
    ExactRun end{shop_.state_hash(folder, kSteps), {}, {}};
    for (const StepEnded& step : canonical_steps(shop_.events(folder))) {
      end.losses.push_back(std::bit_cast<std::uint64_t>(step.loss));
      end.norms.push_back(std::bit_cast<std::uint64_t>(step.gradient_norm));
    }
    return end;
  }
};

TEST_F(XlaExact, killed_is_undisturbed) {
  const Captured done = begin("whole", "{}");
  ASSERT_EQ(done.exit.code, 0) << done.err;
  const ExactRun whole = end_of("whole");
  ASSERT_EQ(whole.losses.size(), static_cast<std::size_t>(kSteps));
  for (const auto& [folder, kill] : std::map<std::string, std::string>{{"update", "update@5"}, {"write", "write@2"}}) {
    const Captured killed = begin(folder, "{}", {"--inject", "kill=" + kill});
    ASSERT_EQ(killed.exit.signal, SIGKILL) << kill << killed.err;
    const std::int64_t saved = shop_.newest_saved(folder);
    EXPECT_GT(saved, 0) << kill;
    const Captured rest = go_on(folder);
    ASSERT_EQ(rest.exit.code, 0) << kill << rest.err;
    EXPECT_EQ(shop_.not_resumed(folder, saved), "") << kill;
    EXPECT_EQ(end_of(folder), whole) << kill;
  }
}

// Records what computed it, and refuses to go on with anything else.
TEST_F(XlaExact, goes_on_where_it_began_alone) {
  ASSERT_EQ(begin("run", "{}").exit.code, 0);
  const std::string numerics = last_of<Opened>(shop_.events("run")).numerics;
  EXPECT_TRUE(numerics.starts_with("cpu (XLA cpu, 0.")) << numerics;
  EXPECT_TRUE(numerics.ends_with(", exact over 4 logical shards")) << numerics;
  struct Refused {
    std::vector<std::string> words;
    const char* named;
  };
  const Refused all[] = {
      {{"resume", "run", "--backend", "cpu", "--set", "train.steps=8"}, "this is this-machine("},
      {{"resume", "run", "--device", "xla-cpu", "--set", "train.steps=8", "--set", "mesh={data: 2}"},
       "this is 2 devices of cpu (XLA cpu, "},
  };
  for (const Refused& one : all) {
    const Captured refused = systole(one.words);
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("exactness ends here: the run was computed by " + numerics), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find(one.named), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("hint: go on where it began"), std::string::npos) << refused.err;
  }
}

// Executables are kept with the compiler's choices; if they are lost, recompiled ones differ.
TEST_F(XlaExact, a_lost_executable_is_told_of) {
  if (!is_long()) return;  // recompiles everything
  ASSERT_EQ(begin("run", "{}").exit.code, 0);
  Command elsewhere = shop_.command({"resume", "run", "--device", "xla-cpu", "--set", "train.steps=8"});
  elsewhere.env = {{"XDG_CACHE_HOME", shop_.path("empty")}, {"ASAN_OPTIONS", "detect_leaks=0"}};
  const Captured refused = run_captured(elsewhere, {.timeout = Seconds(240.0)}).value();
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("exactness ends here: what 'backward"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("is no longer kept"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("hint: bring back " + shop_.path("empty/systole/xla")), std::string::npos) << refused.err;
}

// A mesh that stops and goes on.
TEST_F(XlaExact, a_mesh_goes_on_to_the_same_bits) {
  for (const char* mesh : {"{data: 2}", "{data: 2, fsdp: 2}"}) {
    ASSERT_EQ(begin("whole", mesh).exit.code, 0);
    ASSERT_EQ(begin("half", mesh, {"--set", "train.steps=3"}).exit.code, 0);
    const Captured rest = go_on("half", {"--set", fmt::format("train.steps={}", kSteps)});
    ASSERT_EQ(rest.exit.code, 0) << rest.err;
    EXPECT_EQ(shop_.not_resumed("half", 3), "") << mesh;
    EXPECT_EQ(end_of("half"), end_of("whole")) << mesh;
    if (!is_long()) return;
    for (const char* run : {"whole", "half"}) std::filesystem::remove_all(shop_.path(run));
  }
}

}  // namespace
}  // namespace systole::laws
