#include "operate/import/pattern.h"

#include <fmt/format.h>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/nearest.h"
#include "operate/render/names.h"

namespace systole {
namespace {

constexpr Pattern kPatterns[] = {Pattern::local, Pattern::vm, Pattern::slurm, Pattern::kubernetes};

// What all of them train.
constexpr const char* kModel = R"(
# Linear regression on numbers that are drawn: it needs no file. `systole explain keys` has all that can stand here; a
# program of your own takes the place of model, data, train and checkpoint: command: python3 train.py
model: { family: mlp, inputs: 784, hidden: [], outputs: 10, loss: squared_error }
data: { kind: linear, rows: 60000, held_out_rows: 1000, noise: 0.1 }
train:
  batch: 32
  steps: 1000
  optimizer: { kind: sgd, rate: 0.01 }
checkpoint: { every: 500 }
)";

constexpr const char* kLocal = R"(
# Laid over the rest by --env NAME.
environments:
  dev: { train: { steps: 100 } }
  prod: { train: { steps: 10000 } }
)";

constexpr const char* kVm = R"(
mesh: { data: 2 }            # a rank on each machine
resources: { threads: 1, memory: 1GiB }
folder: /shared/runs         # CHANGE: a folder that all machines see
ssh:
  hosts: [node1, node2]      # CHANGE: [USER@]HOST[:PORT] each; the first leads

# Laid over the rest by --env NAME.
environments:
  dev:
    train: { steps: 100 }
    mesh: { data: 1 }
    ssh: { hosts: [node1] }
  prod: { train: { steps: 10000 } }
)";

constexpr const char* kSlurm = R"(
mesh: { data: 2 }            # a rank on each node
resources: { nodes: 2, threads: 1, memory: 1GiB, longest: 30min }
folder: runs                 # CHANGE: a folder that all nodes see, unless this one is
# slurm: { partition: NAME, account: NAME }      what your cluster asks for

# Laid over the rest by --env NAME.
environments:
  dev:
    train: { steps: 100 }
    resources: { longest: 10min }
  prod:
    train: { steps: 10000 }
    resources: { longest: 12h }
    ranks: { retries: 100 }
)";

constexpr const char* kKubernetes = R"(
mesh: { data: 2 }            # a pod for each rank
resources: { nodes: 2, threads: 1, memory: 1GiB }
image: registry.example/systole:0.1    # CHANGE: yours (systole render --on docker); prod asks for NAME@sha256:DIGEST
claims: { /runs: runs }      # CHANGE: a claim that several pods may mount at once
folder: /runs

# Laid over the rest by --env NAME.
environments:
  dev:
    train: { steps: 100 }
    kubernetes: { namespace: dev }
  prod:
    train: { steps: 10000 }
    kubernetes: { namespace: prod }
    ranks: { retries: 100 }
)";

const char* body_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local: return kLocal;
    case Pattern::vm: return kVm;
    case Pattern::slurm: return kSlurm;
    case Pattern::kubernetes: return kKubernetes;
  }
  return "";
}

const char* about(Pattern pattern) {
  switch (pattern) {
    case Pattern::local: return "this machine";
    case Pattern::vm: return "machines that ssh reaches";
    case Pattern::slurm: return "a Slurm cluster";
    case Pattern::kubernetes: return "a Kubernetes cluster";
  }
  return "";
}

}  // namespace

const char* name_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local: return "local";
    case Pattern::vm: return "vm";
    case Pattern::slurm: return "slurm";
    case Pattern::kubernetes: return "kubernetes";
  }
  return "";
}

std::span<const Pattern> patterns() { return kPatterns; }

Result<Pattern> pattern_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Pattern pattern : kPatterns) {
    if (name == name_of(pattern)) return pattern;
    names.emplace_back(name_of(pattern));
  }
  for (const char* other : {"vertex", "hybrid"})
    if (name == other)
      return error(ErrorKind::unsupported, "there is no pattern '{}': nothing is rendered for it yet", name)
          .hinted("vm, slurm and kubernetes are rendered");
  return error(ErrorKind::invalid, "'{}' is no pattern", name).hinted(nearest_hint(std::string(name), names));
}

Result<std::string> first_workload(Pattern pattern, const std::string& name) {
  constexpr std::size_t kMostName = 48;  // of a run
  TRY(dns_label(name, kMostName, "a run"));
  std::string text = fmt::format("# A first workload for {}.\nsystole: 1\n{}{}{}", about(pattern),
                                 to_yaml(Node::map({{"name", name}})), kModel, body_of(pattern));
  if (Result<Workload> read = read_workload(text, "--name"); !read.ok()) {
    Error why = std::move(read).error();
    why.where = {};  // a line of what was not written
    return why;
  }
  return text;
}

std::string target_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local: return "";
    case Pattern::vm: return "ssh";
    case Pattern::slurm: return "slurm";
    case Pattern::kubernetes: return "kubernetes";
  }
  return "";
}

}  // namespace systole
