// Golden files of each target (examples/rendered; SYSTOLE_UPDATE=1 rewrites them), checked by the programs that will
// read them and against official tables.
#include "operate/targets/job_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/testing/rendered_examples.h"

namespace systole {
namespace {

class Rendering : public testing::TestWithParam<Example> {};

TEST_P(Rendering, is_what_stands_in_examples) {
  const Example& example = GetParam();
  const Workload workload = workload_of(example);
  const std::string place = std::string("examples/rendered/") + example.folder;
  const Rendered made = rendered(workload, example.target, place, example.base, example.accelerator).value();
  std::set<std::string> names;
  for (const RenderedFile& file : made.files) {
    const std::string path = kSource + "/" + place + "/" + file.path;
    names.insert(file.path);
    if (std::getenv("SYSTOLE_UPDATE") != nullptr) {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      std::ofstream(path, std::ios::binary) << file.text;
    }
    const Result<std::string> there = read_text_file(path);
    EXPECT_EQ(there.ok() ? *there : "", file.text) << path << ": SYSTOLE_UPDATE=1 and this test write it anew";
  }
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/" + place))
    EXPECT_TRUE(names.contains(entry.path().filename().string())) << entry.path() << " is of no target any more";
  const Rendered again = rendered(workload, example.target, place, example.base, example.accelerator).value();
  for (std::size_t f = 0; f < made.files.size(); ++f) EXPECT_EQ(again.files[f].text, made.files[f].text);
}

TEST_P(Rendering, shells_take_its_scripts) {
  const Rendered made =
      rendered(workload_of(GetParam()), GetParam().target, "here", GetParam().base, GetParam().accelerator).value();
  std::vector<RenderedFile> files = made.files;
  for (const RenderedFile& file : made.files) {  // a manifest may contain a script
    if (!file.path.ends_with("job.yaml")) continue;
    const Node first = parse_yaml(file.text.substr(0, file.text.find("\n---\n") + 1), "f").value();
    files.push_back({"start.sh", first.find("data")->find("start.sh")->text()});
  }
  for (const RenderedFile& file : files) {
    if (!file.text.starts_with("#!")) continue;
    const bool bash = file.text.starts_with("#!/bin/bash");
    for (std::vector<std::string> words : {std::vector<std::string>{bash ? "bash" : "dash", "-n", "/dev/stdin"},
                                           {"shellcheck", bash ? "--shell=bash" : "--shell=sh", "-"}}) {
      Command command;
      command.argv = words;
      CaptureOptions options;
      options.input = file.text;
      const Captured said = run_captured(command, options).value();
      EXPECT_EQ(said.exit.code, 0) << file.path << "\n" << said.out << said.err;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Rendering, testing::ValuesIn(examples()), [](const auto& each) {
  std::string name = each.param.folder;
  std::ranges::replace(name, '-', '_');
  return name;
});

// Option names and argument kinds of the newest and of an older Slurm.
TEST(RenderSlurm, uses_options_that_sbatch_has) {
  const Node tables =
      parse_json(read_text_file(kSource + "/data/schemas/slurm-sbatch-options.json").value(), "f").value();
  int seen = 0;
  for (const Example& example : examples()) {
    if (example.target != std::string_view("slurm")) continue;
    const std::string text = rendered(workload_of(example), example.target, "here").value().files[0].text;
    for (std::size_t at = text.find("#SBATCH --"); at != text.npos; at = text.find("#SBATCH --", at + 1)) {
      const std::string line = text.substr(at + 10, text.find('\n', at) - at - 10);
      const std::size_t equals = line.find('=');
      for (const char* version : {"24.11.5", "26.05.3"}) {
        const Node* option = tables.find(version)->find("sbatch_options")->find(line.substr(0, equals));
        ASSERT_NE(option, nullptr) << line << " of Slurm " << version;
        const std::string takes = option->find("arg")->text();
        EXPECT_TRUE(takes == "optional" || (takes == "required") == (equals != line.npos)) << line;
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 30);
}

std::string refusal(const char* workload, std::vector<std::string> sets) {
  const Workload made = workload_of({"", "slurm", workload, std::move(sets)});
  const Result<Rendered> result = rendered(made, "slurm", "here");
  return result.ok() ? "" : result.error().message + " | " + result.error().hint;
}

TEST(RenderSlurm, refuses_what_it_cannot_start) {
  EXPECT_EQ(refusal("linear.yaml", {"resources.nodes=4"}),
            "4 ranks on 4 nodes, and the workload has no mesh to lay them out | mesh: { data: 4 }");
  EXPECT_EQ(refusal("linear.yaml", {"mesh={data: 4}", "resources.nodes=3"}),
            "the mesh has 4 devices; 3 nodes of 1 rank are 3 | resources.nodes: 4, or another mesh");
  EXPECT_EQ(refusal("linear.yaml", {"resources.nodes=2:4"}),
            "resources.nodes: 2:4: a model's ranks are the devices of its mesh | resources.nodes: 4; a program of your "
            "own (command) may have a range");
  EXPECT_TRUE(refusal("linear.yaml", {"resources.nodes=2", "resources.gpus_per_node=8"})
                  .starts_with("a model runs on the GPUs of one node, and here are 2 nodes"));
  EXPECT_TRUE(refusal("ddp.yaml", {"claims={/data: corpus}"}).starts_with("claims: Slurm mounts no volumes"));
  EXPECT_TRUE(refusal("ddp.yaml", {"name='!!'"}).starts_with("name: '!!' has no letter"));
  EXPECT_TRUE(refusal("ddp.yaml", {"name=" + std::string(80, 'x')}).find("has 80 characters; a run takes 48") !=
              std::string::npos);
}

// A budget needs a known price, and a ledger that outlives its pod.
TEST(RenderBudget, stands_where_its_price_is_known_and_what_it_cost_can_be_kept) {
  const auto refused = [](const char* target, std::vector<std::string> sets) {
    sets.insert(sets.end(), {kImage, "resources.threads=4", "resources.memory=8GiB", "objective.budget=10"});
    const Result<Rendered> result = rendered(workload_of({"", target, "ddp.yaml", std::move(sets)}), target, "here");
    return result.ok() ? "" : result.error().message;
  };
  const std::string price = "resources.price=2";
  EXPECT_EQ(refused("slurm", {}), "objective.budget: nobody knows what an hour of its machine costs");
  EXPECT_EQ(refused("slurm", {price}), "");
  EXPECT_TRUE(
      refused("slurm", {price, "slurm.array=0:3"}).starts_with("objective.budget: the runs of an array do not see"));
  std::vector<std::string> kept = {price, "claims={/runs: runs}", "folder=/runs"};
  EXPECT_EQ(refused("kubernetes", kept), "");
  EXPECT_TRUE(refused("kubernetes", {price}).ends_with("what it cost would end with its pod"));
  kept.emplace_back("kubernetes.kind=pytorchjob");
  EXPECT_EQ(refused("kubernetes", kept), "objective.budget: a pytorchjob is begun again however its pods end");
}

// User text changes no line of the scripts, and none of it is executed.
TEST(RenderSlurm, hostile_text_changes_no_line) {
  const Workload plain = workload_of(examples()[2]);
  const auto script = [](const Workload& workload) {
    const Rendered made = rendered(workload, "slurm", "here").value();
    return made.files[0].text + made.files[1].text;
  };
  const std::string lines = script(plain);
  for (const std::string& text : hostile_texts()) {
    Workload hostile = plain;
    hostile.command = {"python3", text};
    hostile.env["X"] = text;
    hostile.labels["note"] = text;
    EXPECT_EQ(script(hostile), lines) << text;
    hostile.folder = text;
    if (text.empty()) continue;
    const Rendered made = rendered(hostile, "slurm", "here").value();
    Command command;
    command.argv = {"bash", "-c",
                    made.files[0].text.substr(made.files[0].text.find("export SYSTOLE_RUN="),
                                              made.files[0].text.find("export SYSTOLE_TOKEN") -
                                                  made.files[0].text.find("export SYSTOLE_RUN=")) +
                        "printf %s \"$SYSTOLE_RUN\""};
    EXPECT_EQ(run_captured(command, {}).value().out, (text[0] == '-' ? "./" : "") + text + "/ddp");
  }
}

// The user's text is filled into the script last.
TEST(RenderSsh, a_folder_may_hold_the_words_that_the_script_is_filled_by) {
  for (const char* hosts : {"ssh.hosts=[node1]", "ssh.hosts=[node1, node2]"}) {
    const std::string model = "linear.yaml", path = kSource + "/examples/" + model;
    const std::string mesh = std::string(hosts).find(',') == std::string::npos ? "mesh={data: 1}" : "mesh={data: 2}";
    const auto script = [&](const std::string& folder) {
      const std::string text = read_text_file(path).value();
      const Workload w = read_workload(text, path, {.sets = {mesh, hosts, "folder=" + folder}}).value();
      return rendered(w, "ssh", "here").value().files[0].text;
    };
    std::string strange = script("/mnt/SHARED/CARRIED/FOLDER/runs");
    const std::string plain = script("/mnt/plain/runs");
    // The head has the workload's digest; the rest has only its folder.
    for (std::size_t at; (at = strange.find("SHARED/CARRIED/FOLDER")) != std::string::npos;)
      strange.replace(at, std::string("SHARED/CARRIED/FOLDER").size(), "plain");
    EXPECT_EQ(strange, plain);
  }
}

TEST(RenderTargets, are_named_with_the_nearest) {
  EXPECT_EQ(job_target_row_named("slurm").value(), find_job_target_row("slurm"));
  EXPECT_EQ(job_target_row_named("slrm").error().hint, "did you mean 'slurm'?");
}

}  // namespace
}  // namespace systole
