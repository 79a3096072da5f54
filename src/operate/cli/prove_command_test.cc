// `systole prove` with a fake plugin in place of libtpu: its exact output, as far as it is ours.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/document.h"
#include "operate/cli/testing/fake_plugin.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

class ProveCommand : public FakePluginTest {
 protected:
  ProveCommand() {
    install();
    systole().write("step.mlir", "module { mhlo.num_partitions = 4 }");
  }
  // With its own cache, in the test's folder.
  Captured prove(const std::string& options, const std::string& fake = "") const {
    return systole().shell("env -u XDG_CACHE_HOME FAKE_PJRT='v5e " + fake + "' $SYSTOLE prove --plugins plugins " +
                           options);
  }
};

TEST_F(ProveCommand, takes_the_names_that_people_use) {
  for (const char* name : {"v5e-4", "v5litepod-4", "v5litepod:2x2", "'TPU v5 lite:2x2'"}) {
    const Captured seen = prove(std::string("step.mlir --on ") + name);
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    expect_part(seen.out, "step.mlir on v5e:2x2: fits\n4 of 4 devices");
  }
}

TEST_F(ProveCommand, what_fits) {
  const Captured seen = prove("step.mlir --on v5e:2x2");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  expect_part(seen.out, "step.mlir on v5e:2x2: fits\n4 of 4 devices; libtpu 0.0.51, PJRT API 0.116, ");
  expect_part(seen.out, R"(memory of a device                bytes
arguments                        1000 B
temporaries                        50 B
outputs                           300 B
of these in arguments' places    -200 B
needed                         1.12 KiB
0.0% of the 16.0 GiB that a device has
)");
  EXPECT_EQ(seen.err, "") << "progress is for terminals";
  const Captured again = prove("step.mlir --on v5e:2x2");
  expect_part(again.out, "; proved at 2");
  const Captured fresh = prove("step.mlir --on v5e:2x2 --fresh");
  EXPECT_EQ(fresh.out.find("proved at"), std::string::npos) << fresh.out;
}

TEST_F(ProveCommand, what_does_not_fit_ends_with_1) {
  systole().write("large.mlir", "refuse E1000: Ran out of memory on HBM, 53.22G of 31.24G");
  const Captured seen = prove("large.mlir --on v5e:2x2");
  EXPECT_EQ(seen.exit.code, 1);
  expect_part(seen.out, "large.mlir on v5e:2x2: does not fit\nE1000: Ran out of memory on HBM, 53.22G of 31.24G\n");
  EXPECT_EQ(seen.err, "");
}

TEST_F(ProveCommand, json) {
  const Captured seen = prove("step.mlir --on v5e:2x2 --json");
  const Node document = parse_json(seen.out, "stdout").value();
  EXPECT_EQ(document.find("systole")->text(), "prove");
  EXPECT_EQ(document.find("fits")->text(), "true");
  EXPECT_EQ(document.find("memory")->find("needed_bytes")->text(), "1150");
  EXPECT_EQ(document.find("cached")->text(), "false");
}

// The compiler gets the catalog's flags for the chip, and they are printed; a user's flag of the same name wins.
TEST_F(ProveCommand, flags_of_the_catalog) {
  systole().write(".config/systole/catalog/flags.yaml",
                  "systole_catalog: 1\nentries:\n  v5e:\n    compiler:\n"
                  "      xla_limit: { value: kib_98304, source: us, date: 2026-11-22 }\n");
  systole().write("step.mlir", "wants kib_98304");
  const Captured seen = prove("step.mlir --on v5e:2x2 --xla xla_other=2");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  expect_part(seen.out, "\nwith xla_limit=kib_98304, the catalog's for v5e\nwith xla_other=2\n");
  const Captured json = prove("step.mlir --on v5e:2x2 --xla xla_other=2 --json");
  const Node flags = *parse_json(json.out, "stdout").value().find("flags");
  EXPECT_EQ(flags, Node::map({{"xla_limit", "kib_98304"}, {"xla_other", "2"}}));
  const Captured over = prove("step.mlir --on v5e:2x2 --xla xla_limit=kib_1");
  EXPECT_NE(over.exit.code, 0);
  expect_part(over.err, "the options lack kib_98304");
  systole().write("step.mlir", "wants kib_1");
  expect_part(prove("step.mlir --on v5e:2x2 --xla xla_limit=kib_1").out, "\nwith xla_limit=kib_1\n");
}

TEST_F(ProveCommand, the_cache_is_listed) {
  expect_part(prove("--cache").out, "no proofs in ");
  prove("step.mlir --on v5e:2x2");
  const Captured seen = prove("--cache");
  EXPECT_EQ(seen.exit.code, 0);
  expect_part(seen.out, "v5e:2x2  fits  1.12 KiB");
  expect_part(seen.out, ".cache/systole/prove, which takes at most 64.0 MiB");
  const Node document = parse_json(prove("--cache --json").out, "stdout").value();
  EXPECT_EQ(document.find("proofs")->items().size(), 1U);
}

TEST_F(ProveCommand, what_cannot_be_asked_ends_with_2) {
  const auto refused = [&](const std::string& options, const std::string& message) {
    const Captured seen = prove(options);
    EXPECT_EQ(seen.exit.code, 2) << options << seen.err;
    EXPECT_EQ(seen.out, "") << options;
    expect_part(seen.err, message);
  };
  refused("",
          "error: systole prove: a workload or a module is required\n  hint: systole prove job.yaml --on v5e:2x2\n");
  refused("step.mlir", "error: systole prove: --on is required: which chips\n  hint: --on tpu7x:2x2x1, v4:2x2x1");
  refused("none.mlir --on v5e:2x2", "error: there is no module 'none.mlir'\n  hint: ");
  refused(". --on v5e:2x2", "error: '.' is a folder, not a module\n");
  refused("step.mlir --on v5f:2x2", "error: no chip is called 'v5f'\n  hint: did you mean 'v5e'?");
  refused("step.mlir --on v5e:3x3",
          "error: the compiler knows no slice 'v5e:3x3': NOT_FOUND: no topology 'v5e:3x3': fake:1 to");
  refused("step.mlir --on v5e:3x3", "\n  hint: one that it knows: v5e:2x2\n");
  refused("step.mlir --on v5e:1x1", "step.mlir: error: it was written for 4 devices (4 partitions x 1 replica), and");
  refused("step.mlir --on v5e:2x2 --xla fast", "error: --xla 'fast' is no flag with a value\n  hint: --xla ");
  refused("step.mlir --on v5e:2x2 --timeout soon", "error: ");
  systole().write("bad.mlir", "malformed");
  refused("bad.mlir --on v5e:2x2", "bad.mlir:2:19: error: expected SSA identifier\n");
  systole().write("step.hlo", "HloModule jit_step\n");
  refused("step.hlo --on v5e:2x2", "step.hlo: error: this is HLO, which a compiler makes of StableHLO\n  hint: JAX: ");
  systole().shell("printf '\\177ELF\\002' > program; truncate --size=5G huge.mlir");
  refused("program --on v5e:2x2", "program: error: this is neither StableHLO's text nor its bytecode\n  hint: JAX: ");
  refused("huge.mlir --on v5e:2x2", "huge.mlir: error: modules are read up to 1.00 GiB\n  hint: weights are to be ");
}

TEST_F(ProveCommand, a_compiler_that_fails_is_one_error) {
  const auto fails = [&](const std::string& code, const std::string& fake, int exit, const std::string& message,
                         const std::string& options = "") {
    systole().write("x.mlir", code);
    const Captured seen = prove("x.mlir --on v5e:2x2 " + options, fake);
    EXPECT_EQ(seen.exit.code, exit) << seen.err;
    EXPECT_EQ(seen.exit.signal, 0);
    EXPECT_EQ(seen.out, "");
    EXPECT_EQ(seen.err.rfind("error: ", 0), 0U) << seen.err;
    expect_part(seen.err, message);
    EXPECT_EQ(std::ranges::count(seen.err, '\n'), 2) << "the error and its hint: " << seen.err;
  };
  fails("abort", "", 1, "killed by SIGABRT: F0000 fake_plugin.cc:2] Check failed: devices == 4\n  hint: ");
  fails("hang", "", 1, "was not done after 400 ms\n  hint: --timeout", "--timeout 400ms");
  fails("eat", "", 1, "more than the 200 MiB it may have\n  hint: --max-memory", "--max-memory 200MiB");
  fails("x", "major=1", 3, "another major version than 0.116\n  hint: tools/xla-plugins");
  std::filesystem::remove_all(systole().folder() / "plugins");
  fails("x", "", 3, "XLA's plugin 'tpu' is not in plugins\n  hint: tools/xla-plugins --folder plugins tpu\n");
}

constexpr const char* kJob = R"(systole: 1
name: small
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data:
  train: { files: none.txt }
  tokenizer: { vocabulary: 300 }
train: { batch: 4, steps: 2, optimizer: { rate: 1e-3 } }
)";

TEST_F(ProveCommand, a_workload_beside_its_program) {
  systole().write("job.yaml", kJob);
  const Captured one = prove("job.yaml --on v5e:2x2");
  EXPECT_EQ(one.exit.code, 0) << one.err;
  expect_part(one.out, "small on v5e:2x2: fits\n1 of 4 devices; ");
  expect_part(one.out, "\nthe Program on one device\nmemory of a device ");
  expect_part(one.out, "FLOPs of a device: ");
  EXPECT_EQ(one.err, "job.yaml has no mesh: one of 4 devices is used; --mesh data=4 uses all\n");
  const Captured cut = prove("job.yaml --on v5e:2x2 --mesh data=2,model=2");
  EXPECT_EQ(cut.exit.code, 0) << cut.err;
  expect_part(cut.out, "4 of 4 devices; ");
  expect_part(cut.out, "the Program on data=2 model=2\n");
  expect_part(cut.out, "collectives     planned  compiled");
  const Node document = parse_json(prove("job.yaml --on v5e:2x2 --mesh data=4 --json").out, "stdout").value();
  EXPECT_EQ(document.find("program")->find("mesh")->text(), "data=4");
}

TEST_F(ProveCommand, a_workload_that_cannot_be_proved) {
  systole().write("job.yaml", kJob);
  const auto refused = [&](const std::string& options, int exit, const std::string& message) {
    const Captured seen = prove("job.yaml --on v5e:2x2 " + options);
    EXPECT_EQ(seen.exit.code, exit) << options << seen.err;
    EXPECT_EQ(seen.out, "") << options;
    expect_part(seen.err, message);
  };
  refused("--mesh data=8", 2,
          "job.yaml: error: its mesh has 8 devices, and v5e:2x2 has 4\n  hint: --mesh, or --on a larger");
  refused("--mesh data", 2, "error: --mesh 'data': 'data' is no axis with a size\n  hint: --mesh data=4,model=2");
  refused("--mesh data=2,=2", 2, "'=2' is no axis with a size");
  refused("--mesh data=two", 2, "error: ");
  refused("--set train.exact=true --set train.batch=8", 3,
          "is of exact training, whose devices run logical shards in sequence");
}

constexpr const char* kLengths = R"(systole: 1
name: small
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32, dropout: 0 }
data: { train: { files: text.txt, document: line }, folder: data, tokenizer: { vocabulary: 300 }, buckets: [8, 16] }
train: { batch: 4, steps: 2, optimizer: { rate: 1e-3 } }
)";

TEST_F(ProveCommand, with_buckets_the_step_of_every_length_is_proved) {
  systole().write("job.yaml", kLengths);
  const std::string asked = "job.yaml --on v5e:2x2 --mesh data=4";
  const Captured all = prove(asked);
  EXPECT_EQ(all.exit.code, 0) << all.err;
  expect_part(all.out, "small on v5e:2x2: fits\n");
  expect_part(all.out, "\nrows of  rows a step        planned  predicted  compiled  ");
  expect_part(all.out, "\n      8           16  fits  ");
  expect_part(all.out, "\n     16            8  fits  ");
  expect_part(all.out, "\n     32            4  fits  ");
  expect_part(all.out, "\n3 of 3 lengths fit; ");

  // Each module is another: there is no memory for the rows of 16.
  const Captured one = prove(asked + " --fresh", "rows=8");
  EXPECT_EQ(one.exit.code, 1) << one.err;
  expect_part(one.out, "small on v5e:2x2: fits\n");
  expect_part(one.out, "\n     16            8  does not fit  ");
  expect_part(one.out, "\nrows of 16: E1000: Ran out of memory on HBM, 53.22G of 31.24G\n2 of 3 lengths fit; ");
  EXPECT_EQ(one.err.find("next: "), std::string::npos) << one.err;

  const Node document = parse_json(prove(asked + " --fresh --json", "rows=8").out, "stdout").value();
  EXPECT_EQ(document.text_at("fits"), "false");
  std::string seen;
  double last = 0;
  for (const Node& step : document.find("lengths")->items()) {
    seen += step.text_at("row_tokens") + "x" + step.text_at("rows") + " " + step.text_at("fits") + ", ";
    const double flops = step.find("program")->find("flops")->as_double().value();
    EXPECT_GT(flops, last) << "attention: longer rows of as many tokens take more";
    last = flops;
  }
  EXPECT_EQ(seen, "8x16 true, 16x8 false, 32x4 true, ");
}

TEST_F(ProveCommand, the_lengths_are_those_that_the_data_have) {
  systole().write("job.yaml", kLengths);
  const std::string automatic = "job.yaml --on v5e:2x2 --mesh data=4 --set data.buckets=auto --json";
  const Captured before = prove(automatic);
  EXPECT_EQ(before.exit.code, 0) << before.err;
  expect_part(before.err, "data.buckets: auto follows from lengths that are not known");
  expect_part(before.err, "hint: systole data build");
  EXPECT_EQ(parse_json(before.out, "stdout").value().find("lengths"), nullptr);

  std::string text;  // of 4 to 8 tokens, and of 17 to 32
  for (int i = 0; i < 240; ++i) {
    text += fmt::format("alpha {}", i * 7919 % 1000);
    for (int more = 0; more < i % 2 * 7; ++more) text += fmt::format(" of beta{}", (i + more) % 13);
    text += "\n";
  }
  systole().write("text.txt", text);
  const auto lengths = [&](const std::string& words) {
    const Captured seen = prove(words);
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    std::string all;
    const Node document = parse_json(seen.out, "stdout").value();
    for (const Node& step : document.find("lengths")->items()) all += step.text_at("row_tokens") + " ";
    return all;
  };
  const std::string predict = "job.yaml --on v5e:2x2 --predict --json";
  EXPECT_EQ(lengths(predict), "8 16 32 ") << "not built";
  ASSERT_EQ(systole().shell("exec $SYSTOLE data build job.yaml").exit.code, 0);
  EXPECT_EQ(lengths(predict), "8 32 ") << "no row of 9 to 16 tokens";
  ASSERT_EQ(systole().shell("exec $SYSTOLE data build job.yaml --set data.buckets=auto").exit.code, 0);
  EXPECT_NE(lengths(automatic), "") << "found from the data";
}

// Ctrl-C also ends the compiler.
TEST_F(ProveCommand, interrupted) {
  systole().write("x.mlir", "hang begun");
  const Captured seen = prove(
      "x.mlir --on v5e:2x2 & child=$!; n=0; while [ ! -e begun ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done; "
      "kill -INT $child; wait $child");
  ASSERT_TRUE(std::filesystem::exists(systole().folder() / "begun"));
  EXPECT_EQ(seen.exit.code, 130) << seen.err;
  EXPECT_EQ(seen.err, "error: interrupted\n");
}

}  // namespace
}  // namespace systole::cli
