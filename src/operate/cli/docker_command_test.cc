// The image has exactly the libraries that the program needs; `render --on docker` as users see it.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "operate/cli/testing/run_systole.h"
#include "operate/targets/docker/docker.h"

namespace systole::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Sanitizer libraries, which no image's packages have.
bool is_for_tests(const std::string& name) {
  return name.find("asan") != name.npos || name.find("ubsan") != name.npos || name.find("tsan") != name.npos;
}

// Every base image has its own C library: recognised by the line of ldd.
bool is_of_the_c_library(const std::string& line) {
  const std::string name = line.substr(line.find_first_not_of(" \t"));
  const auto is = [&name](const char* library) { return name.starts_with(library); };
  return is("libc.so.") || is("libm.so.") || is("libdl.so.") || is("libpthread.so.") || is("librt.so.");
}

// Each library's package is the one that owns its file, by dpkg.
TEST(DockerImage, packages_are_those_of_the_programs_libraries) {
  const SystoleRunner systole;
  if (systole.shell("command -v dpkg-query readelf").exit.code != 0) GTEST_SKIP() << "no Debian";
  std::string text = systole.shell("readelf -d \"$SYSTOLE\" | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'").out;
  std::set<std::string> packages;
  std::vector<std::string> names = lines_of(text);
  ASSERT_GT(names.size(), 5u);
  names.insert(names.end(), late_libraries().begin(), late_libraries().end());
  for (const std::string& name : names) {
    if (is_for_tests(name)) continue;
    const Captured found =
        systole.shell("dpkg-query -S \"*-linux-gnu/" + name + "\" | grep -v diversion | cut -d: -f1 | sort -u");
    ASSERT_EQ(lines_of(found.out).size(), 1u) << name << ": " << found.out << found.err;
    packages.insert(lines_of(found.out)[0]);
  }
  packages.erase("libc6");  // every base has one
  EXPECT_EQ(packages, std::set<std::string>(runtime_packages().begin(), runtime_packages().end()))
      << "operate/targets/docker/packages.cc";
}

constexpr const char* kProgram = R"(systole: 1
name: job
command: python3 train.py
image: europe-west4-docker.pkg.dev/lab/ml/job:0.1
)";

TEST(DockerImage, libraries_come_along_onto_a_base_of_another_kind) {
  const SystoleRunner systole;
  systole.write("job.yaml", kProgram);
  const Captured made = systole.run({"render", "job.yaml", "--on", "docker", "--base",
                                     "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime", "--out", "out"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const Captured copied = systole.shell("sh out/libraries.sh libraries \"$SYSTOLE\"");
  ASSERT_EQ(copied.exit.code, 0) << copied.err;
  // With only these libraries and the C library's the program starts; nothing is loaded from elsewhere. Sanitizer
  // libraries are included like all others.
  const Captured found = systole.shell(
      "LD_LIBRARY_PATH=$PWD/libraries ldd \"$SYSTOLE\" libraries/libdnnl.so.2 "
      "libraries/libevent_openssl-2.1.so.7 libraries/libsentencepiece.so.0 libraries/libssl.so.3");
  int ours = 0;
  for (const std::string& line : lines_of(found.out)) {
    EXPECT_EQ(line.find("not found"), line.npos) << line;
    if (line.find(" => ") == line.npos) continue;
    const bool c_library = is_of_the_c_library(line);
    EXPECT_EQ(line.find("/libraries/") != line.npos, !c_library) << line;
    ours += c_library ? 0 : 1;
  }
  EXPECT_GT(ours, 12);
  EXPECT_EQ(systole.shell("LD_LIBRARY_PATH=$PWD/libraries \"$SYSTOLE\" --version").exit.code, 0);
}

TEST(DockerImage, is_told_with_the_commands_that_make_it) {
  const SystoleRunner systole;
  systole.write("job.yaml", kProgram);
  const Captured made = systole.run({"render", "job.yaml", "--on", "docker", "--base",
                                     "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime", "--out", "out"});
  EXPECT_EQ(made.out, "written: 5 files in out\n");
  EXPECT_EQ(made.err,
            "copy:  cp -- \"$(command -v systole)\" out/systole\n"
            "build: docker build --file out/Dockerfile.program --tag europe-west4-docker.pkg.dev/lab/ml/job:0.1 out\n"
            "push:  docker push europe-west4-docker.pkg.dev/lab/ml/job:0.1\n"
            "digest: docker inspect --format '{{index .RepoDigests 0}}' europe-west4-docker.pkg.dev/lab/ml/job:0.1\n"
            "login: gcloud auth configure-docker europe-west4-docker.pkg.dev\n"
            "cloud: gcloud builds submit --project=lab --config=out/cloudbuild.yaml out\n");
  // The digest is that of the copied program.
  EXPECT_EQ(systole.shell("sed 's|/usr/bin/systole|'\"$SYSTOLE\"'|' out/systole.sha256 | sha256sum -c -").exit.code, 0);
  const Captured refused = systole.run({"render", "job.yaml", "--on", "docker"});
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_TRUE(
      refused.err.starts_with("error: --base: a program of your own brings the image that it runs in\n  hint: "))
      << refused.err;
  EXPECT_EQ(systole.run({"render", "job.yaml", "--on", "slurm", "--base", "x:1"}).exit.code, 2);
}

}  // namespace
}  // namespace systole::cli
