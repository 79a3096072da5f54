// The TPU compiler's figures against the Program's own: `systole prove`, for chips that are not installed.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "ground/pjrt/places.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

struct Needs {
  double arena = 0, compiled = 0;  // bytes
};

class XlaProves : public testing::Test {
 protected:
  void SetUp() override {
    if (!pjrt::find_plugin("tpu", pjrt::plugins_folder()).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins tpu";
  }

  Node proved(std::vector<std::string> words) const {
    words.insert(words.begin(), "prove");
    words.insert(words.end(), {"--on", "v5e:2x2", "--json"});
    Command command = shop_.command(std::move(words));
    command.env.push_back({"XDG_CACHE_HOME", shop_.path("cache")});
    // Leaks of a vendor's library are ignored; LeakSanitizer is for ours.
    command.env.push_back({"ASAN_OPTIONS", "detect_leaks=0"});
    CaptureOptions options;
    options.timeout = Seconds(240.0);
    const Captured said = run_captured(command, options).value();
    if (said.exit.code != 0) fail(error(ErrorKind::invalid, "{}", said.err));
    return parse_json(said.out, "stdout").value();
  }

  // `unrolled`: layers are written out, not as a loop.
  Needs needs(const std::string& recompute, int layers, bool unrolled) const {
    const std::vector<std::string> job{"gpt.yaml", "--set", "train.recompute=" + recompute, "--set",
                                       fmt::format("model.layers={}", layers)};
    const Node document = proved(job);
    Needs found{document.find("program")->find("arena_bytes")->as_double().value(),
                document.find("memory")->find("needed_bytes")->as_double().value()};
    if (!unrolled) return found;
    std::vector<std::string> show{"show", "stablehlo", "--unroll"};
    show.insert(show.end(), job.begin(), job.end());
    shop_.write("unrolled.mlir", shop_.systole(show).out);
    found.compiled = proved({"unrolled.mlir"}).find("memory")->find("needed_bytes")->as_double().value();
    return found;
  }

  const Workshop shop_;
};

// Layers whose activations are most of a step's memory. The compiler may keep what it wants; loops make it recompute
// what the Program recomputes, and without a loop the barriers in the text do.
TEST_F(XlaProves, recomputing_saves_the_compiler_half_of_what_it_saves_the_arena) {
  shop_.write("gpt.yaml",
              "systole: 1\nname: gpt\nmodel: { family: gpt, layers: 12, width: 512, heads: 8, context: 1024 }\n"
              "data: { train: { files: none.txt }, tokenizer: { vocabulary: 300 } }\n"
              "train: { batch: 8, steps: 1, precision: bf16, optimizer: { kind: adamw, rate: 1e-4 } }\n");
  for (const bool unrolled : {false, true}) {
    if (unrolled && !is_long()) continue;  // the compiler takes half a minute
    const int layers = unrolled ? 4 : 12;
    const Needs all = needs("none", layers, unrolled), again = needs("block", layers, unrolled);
    const double arena_drops = all.arena - again.arena, compiled_drops = all.compiled - again.compiled;
    const auto mib = [](double bytes) { return bytes / (1 << 20); };
    note(
        fmt::format("recomputing blocks of a gpt of {} layers{} on v5e: the arena {:.0f} to {:.0f} MiB, the compiler "
                    "{:.0f} to {:.0f} MiB, {:.2f} of the arena's drop",
                    layers, unrolled ? ", unrolled," : "", mib(all.arena), mib(again.arena), mib(all.compiled),
                    mib(again.compiled), compiled_drops / arena_drops));
    EXPECT_GT(arena_drops, 0.3 * all.arena);
    EXPECT_GE(compiled_drops, 0.5 * arena_drops);
  }
}

}  // namespace
}  // namespace systole::laws
