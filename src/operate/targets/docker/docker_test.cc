// Dockerfiles: their grammar and rules, checked with mutants; hostile names; refusals; Cloud Build's schema.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "ground/catalog/image.h"
#include "ground/process/capture.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/docker/docker.h"
#include "operate/targets/docker/testing/dockerfile_rules.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

const std::string kSource = SYSTOLE_SOURCE_DIR;
constexpr const char* kImage = "image=europe-west4-docker.pkg.dev/lab/ml/job:0.1";

std::span<const ImageRow> images() {
  static const std::vector<ImageRow> all = catalog_images().value();
  return all;
}

struct Ask {
  const char* workload = "linear.yaml";
  std::vector<std::string> sets = {kImage};
  std::string base, environment;
  std::optional<ImageAccelerator> accelerator;
};

Result<Rendered> rendered_of(const Workload& workload, const Ask& of) {
  RenderRequest ask{.target = find_job_target_row("docker"), .workload = workload, .facts = builtin_facts()};
  ask.workload_file = {to_yaml(workload), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = "here";
  ask.environment = of.environment;
  ask.image = {.base = of.base, .accelerator = of.accelerator, .known = images()};
  return render(ask);
}
Workload workload_of(const Ask& of) {
  const std::string path = kSource + "/examples/" + of.workload;
  return read_workload(read_text_file(path).value(), path, {.sets = of.sets}).value();
}
Rendered rendered(const Ask& of) { return rendered_of(workload_of(of), of).value(); }
std::string refusal(const Ask& of) {
  const Result<Rendered> made = rendered_of(workload_of(of), of);
  return made.ok() ? "" : made.error().message + " | " + made.error().hint;
}

std::set<std::string> beside(const Rendered& made) {
  std::set<std::string> names = {"systole"};  // the first command copies it there
  for (const RenderedFile& file : made.files) names.insert(file.path);
  return names;
}

const std::vector<Ask>& asks() {
  static const std::vector<Ask> all = {
      {},
      {.accelerator = ImageAccelerator::tpu},
      {.sets = {kImage, "resources.gpus_per_node=8"}},
      {.workload = "serve-small.yaml", .sets = {kImage, "serve.from=/models/gpt2"}},
      {.workload = "ddp.yaml", .base = "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"},
      {.workload = "ddp.yaml", .base = "registry.example/own@sha256:" + std::string(64, 'c')}};
  return all;
}

TEST(RenderDocker, files_hold_to_the_grammar_and_to_our_rules) {
  std::set<std::string> names;
  for (const Ask& of : asks()) {
    const Rendered made = rendered(of);
    names.insert(made.files[0].path);
    EXPECT_EQ(dockerfile_faults(made.files[0].text, beside(made)), std::vector<std::string>()) << made.files[0].text;
    for (const DockerInstruction& each : dockerfile_of(made.files[0].text)) {
      if (each.name != "RUN") continue;
      Command command;
      command.argv = {"dash", "-n", "/dev/stdin"};
      CaptureOptions options;
      options.input = each.rest;
      EXPECT_EQ(run_captured(command, options).value().exit.code, 0) << each.rest;
    }
    // Exactly the copied files go to the builder.
    std::string ignored;
    for (const RenderedFile& file : made.files)
      if (file.path == ".dockerignore") ignored = file.text;
    for (const std::string& name : beside(made)) {
      const bool copied = made.files[0].text.find(" " + name + " ") != std::string::npos;
      EXPECT_EQ(ignored.find("\n!" + name + "\n") != std::string::npos, copied) << name;
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"Dockerfile.cpu", "Dockerfile.tpu", "Dockerfile.cuda", "Dockerfile.program"}));
}

TEST(RenderDocker, rules_find_what_is_wrong) {
  const Rendered made = rendered(asks()[2]);
  const auto mutant = [&](const std::string& what, const std::string& by) {
    std::string text = made.files[0].text;
    const std::size_t at = text.rfind(what);
    CHECK(at != text.npos, "there is no {}", what);
    text.replace(at, what.size(), by);
    return dockerfile_faults(text, beside(made)).size();
  };
  for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{
           {"USER 10001:10001", "USER 0:0"},
           {"USER 10001:10001", "USER root"},
           {"ENTRYPOINT [\"/usr/bin/systole\"]", "ENTRYPOINT /usr/bin/systole"},
           {"ENTRYPOINT", "ENTRYPOINTS"},
           {"FROM nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04", "FROM nvidia/cuda:latest"},
           {"FROM nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04", "FROM nvidia/cuda"},
           {"FROM nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04", "FROM nvidia/cuda:12.1-runtime"},
           {"@sha256:", "@sha256:0"},
           {"--from=plugins", "--from=plugin"},
           {"COPY libraries.sh", "COPY library.sh"},
           {"COPY libraries.sh", "ADD libraries.sh"},
           {"LABEL \"", "LABEL \"$"}})
    EXPECT_GT(mutant(what, by), 0u) << by;
}

TEST(RenderDocker, pins_are_those_of_the_tools) {
  EXPECT_EQ(xla_plugins_script(), read_text_file(kSource + "/tools/xla-plugins").value());
  EXPECT_EQ(xla_plugins_pins(), read_text_file(kSource + "/tools/xla-plugins.txt").value());
  const Rendered made = rendered(asks()[1]);
  EXPECT_NE(made.files[0].text.find("--folder /xla-plugins tpu\n"), std::string::npos);
}

TEST(RenderDocker, labels_stay_labels) {
  const std::size_t lines = dockerfile_of(rendered({}).files[0].text).size();
  int taken = 0;
  for (const std::string& text : hostile_texts()) {
    Workload hostile = workload_of({});
    hostile.labels["note"] = text;
    hostile.name = "x" + text;
    const Result<Rendered> made = rendered_of(hostile, {});
    if (!made.ok()) continue;
    ++taken;
    const std::vector<DockerInstruction> all = dockerfile_of(made->files[0].text);
    ASSERT_EQ(all.size(), lines + 1) << text;
    bool there = false;
    for (const DockerInstruction& each : all)
      there = there ||
              (each.name == "LABEL" && quoted_pair(each.rest) == std::vector<std::string>{"systole.label/note", text});
    EXPECT_TRUE(there) << text << "\n" << made->files[0].text;
  }
  EXPECT_GT(taken, 50);
}

TEST(RenderDocker, refuses_what_is_not_pinned) {
  EXPECT_TRUE(refusal({.sets = {}}).starts_with("image: what is it called? | image: REGION"));
  EXPECT_EQ(refusal({.workload = "ddp.yaml"}).substr(0, 67),
            "--base: a program of your own brings the image that it runs in | de");
  EXPECT_EQ(refusal({.base = "debian:bookworm-slim"}),
            "--base: 'debian:bookworm-slim' is another image from time to time | debian:bookworm-20260918-slim");
  EXPECT_EQ(refusal({.base = "debian:bookworm-20200101-slim"}),
            "--base: 'debian:bookworm-20200101-slim' is in no list of images | debian:bookworm-20260918-slim");
  EXPECT_NE(refusal({.base = "debian:latest"}).find("is another image each day"), std::string::npos);
  EXPECT_NE(refusal({.base = "a b"}).find("is no image"), std::string::npos);
  EXPECT_NE(refusal({.base = "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"}).find("is for programs of your own"),
            std::string::npos);
  EXPECT_NE(refusal({.workload = "ddp.yaml", .base = "own/image:1.2.3"}).find("is in no list of images"),
            std::string::npos);
  EXPECT_NE(refusal({.sets = {"image=a/b@sha256:" + std::string(64, 'a')}}).find("is by digest"), std::string::npos);
  EXPECT_NE(refusal({.sets = {"image=us-docker.pkg.dev/lab/job:1"}}).find("is no name of Artifact Registry's"),
            std::string::npos);
}

TEST(RenderDocker, production_asks_for_digests) {
  const std::vector<std::string> gpus = {kImage, "resources.gpus_per_node=8"};
  EXPECT_EQ(
      refusal({.sets = gpus, .environment = "prod"}),
      "--base: nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04 has no digest, and prod is production | `docker buildx "
      "imagetools inspect nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04` prints it; put it into "
      "~/.config/systole/catalog/images.csv");
  EXPECT_EQ(refusal({.sets = gpus, .environment = "dev"}), "");
  EXPECT_EQ(refusal({.environment = "production"}), "") << "Debian's is known";
}

TEST(RenderDocker, cloud_build_is_as_its_schema_says) {
  const nlohmann::json root =
      nlohmann::json::parse(read_text_file(kSource + "/data/schemas/cloudbuild.strict.schema.json").value());
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(root), schema);
  const auto fits = [&](const Node& build) {
    const nlohmann::json value = nlohmann::json::parse(to_json(build));
    valijson::Validator validator;
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(value), nullptr);
  };
  const Rendered made = rendered({});
  ASSERT_EQ(made.files.back().path, "cloudbuild.yaml");
  const Node build = parse_yaml(made.files.back().text, "f").value();
  EXPECT_TRUE(fits(build));
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Node>>{{"stepz", Node::sequence()},
                                                 {"timeout", "3600"},
                                                 {"images", "a"},
                                                 {"options", Node::map({{"logging", "cloud"}})},
                                                 {"steps", Node::sequence({Node::map({{"nam", "x"}})})}}) {
    Node mutant = build;
    EXPECT_FALSE(fits(mutant.set(key, value))) << key;
  }
  EXPECT_FALSE(fits(Node::map({{"images", *build.find("images")}})));
  EXPECT_NE(rendered({.sets = {"image=ghcr.io/lab/job:1"}}).files.back().path, "cloudbuild.yaml")
      << "not Google's to push";
}

// A base image matches its accelerator, and the accelerator matches the workload.
TEST(RenderDocker, a_base_is_for_its_accelerator) {
  using enum ImageAccelerator;
  const std::string nvidia = "nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04", debian = "debian:bookworm-20260918-slim",
                    torch = "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime";
  const std::string tpu_on_cuda = refusal({.base = nvidia, .accelerator = tpu});
  EXPECT_EQ(tpu_on_cuda, "--base: '" + nvidia + "' is for cuda, and --accelerator is tpu | " + debian);
  EXPECT_NE(refusal({.base = debian, .accelerator = cuda}), "");
  EXPECT_NE(refusal({.base = nvidia, .accelerator = cpu}), "");
  EXPECT_NE(refusal({.base = nvidia}), "") << "a model without GPUs needs none of it";
  EXPECT_NE(refusal({.sets = {kImage, "resources.gpus_per_node=8"}, .base = debian}), "");
  EXPECT_NE(refusal({.workload = "ddp.yaml", .base = torch, .accelerator = tpu}), "");
  EXPECT_EQ(refusal({.workload = "ddp.yaml", .base = torch}), "") << "a program says nothing of what it needs";
  EXPECT_EQ(refusal({.sets = {kImage, "resources.gpus_per_node=8"}, .base = nvidia}), "");
  const auto made_for = [](const char* accelerators) {
    return rendered({.sets = {kImage, fmt::format("resources.accelerators={}", accelerators)}}).files[0].path;
  };
  EXPECT_EQ(made_for("'h100:8'"), "Dockerfile.cuda");
  EXPECT_EQ(made_for("'v5e:2x2'"), "Dockerfile.tpu");
}

}  // namespace
}  // namespace systole
