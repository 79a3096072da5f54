#include "operate/init/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/nearest.h"
#include "operate/render/names.h"

namespace systole {
namespace {

constexpr Pattern kPatterns[] = {Pattern::local, Pattern::linear, Pattern::gce,
                                 Pattern::vm,    Pattern::slurm,  Pattern::kubernetes};

constexpr const char* kLinear = R"(
# Linear regression on numbers that are drawn: it needs no file. `systole explain keys` lists all that can stand here. A
# program of your own takes the place of model, data, train and checkpoint: command: python3 train.py
model: { family: mlp, inputs: 784, hidden: [], outputs: 10, loss: squared_error }
data: { kind: linear, rows: 60000, held_out_rows: 1000, noise: 0.1 }
train:
  batch: 32
  steps: 1000
  optimizer: { kind: sgd, rate: 0.01 }
checkpoint: { every: 500 }
)";

// Placeholders below: DEV_STEPS and PROD_STEPS are numbers of steps; GCE_… are facts of the machine.
constexpr const char* kLocal = R"(
# Laid over the rest by --env NAME.
environments:
  dev: { train: { steps: DEV_STEPS } }
  prod: { train: { steps: PROD_STEPS } }
)";

constexpr const char* kGce = R"(
# One machine of Compute Engine with one GPU. In the catalog's list of GCE_DATE it costs GCE_PRICE on demand,
# the lowest price of a machine that comes with one GPU. `systole catalog prices --machine GCE_MACHINE` lists others.
#   1. `systole render` with `--on gcloud` writes the command that makes the machine, and the line that deletes it.
#   2. Bring systole, this file and its text there. `nvidia-smi` on the machine says when its driver is ready.
#   3. There, `systole run` with `--device gpu` trains on the GPU. Without `--device` it trains on a CPU, here as well.
#   4. Delete the machine: it costs money until then, whether it trains or not.
resources: { provisioning: on-demand }
gcloud:
  create: instances
  name: GCE_NAME
  zone: GCE_ZONE
  machine: GCE_MACHINE       # one GCE_GPU
  # project: NAME            # CHANGE: without it, the project that gcloud is set to
  options:
    image-family: debian-12
    image-project: debian-cloud
    boot-disk-size: 100GB
    maintenance-policy: TERMINATE          # a machine with a GPU cannot move to another host while it runs
    metadata: install-nvidia-driver=True
    scopes: storage-rw,logging-write       # what programs there may do: no more than a training needs

# Laid over the rest by --env NAME. spot: cheaper, and may be taken away at any time; `systole resume` goes on.
environments:
  dev: { train: { steps: DEV_STEPS } }
  prod: { train: { steps: PROD_STEPS } }
  spot: { resources: { provisioning: spot } }
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
    train: { steps: DEV_STEPS }
    mesh: { data: 1 }
    ssh: { hosts: [node1] }
  prod: { train: { steps: PROD_STEPS } }
)";

constexpr const char* kSlurm = R"(
mesh: { data: 2 }            # a rank on each node
resources: { nodes: 2, threads: 1, memory: 1GiB, longest: 30min }
folder: runs                 # CHANGE: a folder that all nodes see, unless this one is
# slurm: { partition: NAME, account: NAME }      what your cluster asks for

# Laid over the rest by --env NAME.
environments:
  dev:
    train: { steps: DEV_STEPS }
    resources: { longest: 10min }
  prod:
    train: { steps: PROD_STEPS }
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
    train: { steps: DEV_STEPS }
    kubernetes: { namespace: dev }
  prod:
    train: { steps: PROD_STEPS }
    kubernetes: { namespace: prod }
    ranks: { retries: 100 }
)";

const char* body_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local:
    case Pattern::linear: return kLocal;
    case Pattern::gce: return kGce;
    case Pattern::vm: return kVm;
    case Pattern::slurm: return kSlurm;
    case Pattern::kubernetes: return kKubernetes;
  }
  return "";
}

const char* about(Pattern pattern) {
  switch (pattern) {
    case Pattern::local:
    case Pattern::linear: return "this machine";
    case Pattern::gce: return "one GPU machine of Compute Engine";
    case Pattern::vm: return "machines that ssh reaches";
    case Pattern::slurm: return "a Slurm cluster";
    case Pattern::kubernetes: return "a Kubernetes cluster";
  }
  return "";
}

constexpr std::int64_t kLinearSteps = 1000;  // as in kLinear

// `text` with the placeholders in `words` replaced.
std::string with_words(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [name, word] : words)
    for (std::size_t at = 0; (at = text.find(name, at)) != text.npos; at += word.size())
      text.replace(at, name.size(), word);
  return text;
}

std::string indented(const std::string& text, const char* by) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += by + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return lines;
}

const char* where_documents_end(DocumentRule rule) {
  switch (rule) {
    case DocumentRule::line: return "each line is a document";
    case DocumentRule::blank_line: return "an empty line ends a document";
    case DocumentRule::file: return "each file is a document";
  }
  return "";
}

// Keys model, data, train and checkpoint of a language model. `target`: where it runs; "": this machine.
std::string language_model(const FirstModel& first, const std::string& target) {
  const TextFacts& text = first.text;
  const ModelSize& size = first.size;
  const double passes = static_cast<double>(first.steps * size.tokens_a_step()) /
                        static_cast<double>(std::max<std::int64_t>(1, text.tokens()));
  const Node files =
      text.files.size() == 1 ? Node(text.files.front()) : Node::sequence({text.files.begin(), text.files.end()});
  std::string yaml = fmt::format(
      "\n# A language model on {}{} of text, about {} tokens. The model is sized by the text and by this machine.\n"
      "# `systole explain keys` lists all keys, `systole explain topics` the ideas behind them.\n"
      "model: {{ family: gpt, layers: {}, width: {}, heads: {}, context: {} }}\n\ndata:\n  train:\n",
      text.estimated ? "about " : "", to_string(text.bytes), with_commas(text.tokens()), size.layers, size.width,
      size.heads, size.context);
  if (!target.empty()) yaml += "    # CHANGE: a path that is there on each machine of the run\n";
  yaml += indented(to_yaml(Node::map({{"files", files}})), "    ");
  if (!text.records)
    yaml += fmt::format("    document: {:<18} # {}\n", name_of(text.document), where_documents_end(text.document));
  if (text.ill_formed)
    yaml += fmt::format("    invalid_utf8: {:<14} # some bytes are not UTF-8: U+FFFD stands for them\n", "replace");
  return yaml +
         fmt::format(
             "  held_out: {{ fraction: {:.0f}% }}        # of the documents, to measure the model on: never trained "
             "on\n"
             "  tokenizer: {{ kind: sentencepiece, vocabulary: {} }}    # trained on the documents that are left\n\n"
             "train:\n"
             "  batch: {:<23} # rows a step, of `context` tokens each\n"
             "  steps: {:<23} # {:.2g} passes over the text{}{}\n"
             "  optimizer: {{ kind: adamw, rate: {}, schedule: warmup-stable-decay }}\n"
             "  precision: bf16                # of computing; parameters stay f32\n\n"
             "checkpoint: {{ every: {}, keep: 2 }}    # steps; a run that was stopped goes on by `systole resume`\n",
             100 * text.held_out, text.vocabulary, size.batch, first.steps, passes, first.predicted.empty() ? "" : ", ",
             first.predicted, size.rate, std::max<std::int64_t>(1, first.steps / 4));
}

}  // namespace

const char* name_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local: return "local";
    case Pattern::linear: return "linear";
    case Pattern::gce: return "gce";
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

Result<std::string> first_workload(const FirstWorkload& first) {
  const std::string label = TRY(dns_label(first.name, kMostRunName, "a run"));
  CHECK(first.pattern != Pattern::local || first.model != nullptr, "a language model needs a text");
  CHECK(first.pattern != Pattern::linear || first.model == nullptr, "a linear regression has no text");
  CHECK(first.pattern != Pattern::gce || first.machine != nullptr, "no machine");
  const std::int64_t steps = first.model != nullptr ? first.model->steps : kLinearSteps;
  std::vector<std::pair<std::string, std::string>> words = {
      {"DEV_STEPS", fmt::to_string(std::max<std::int64_t>(1, steps / 10))},
      {"PROD_STEPS", fmt::to_string(steps * (first.model != nullptr ? 4 : 10))}};
  if (first.machine != nullptr) {
    const GpuMachine& machine = *first.machine;
    words.insert(words.end(), {{"GCE_NAME", label},
                               {"GCE_ZONE", machine.zone},
                               {"GCE_MACHINE", machine.machine},
                               {"GCE_GPU", machine.accelerator},
                               {"GCE_PRICE", machine.price},
                               {"GCE_DATE", machine.price_date}});
  }
  std::string text =
      fmt::format("# A first workload for {}.\nsystole: 1\n{}{}{}", about(first.pattern),
                  to_yaml(Node::map({{"name", first.name}})),
                  first.model != nullptr ? language_model(*first.model, target_of(first.pattern)) : kLinear,
                  with_words(body_of(first.pattern), words));
  if (Result<Workload> read = read_workload(text, "--name"); !read.ok()) {
    Error why = std::move(read).error();
    why.where = {};  // the line is in a file that was not written
    return why;
  }
  return text;
}

std::string target_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::local:
    case Pattern::linear: return "";
    case Pattern::gce: return "gcloud";
    case Pattern::vm: return "ssh";
    case Pattern::slurm: return "slurm";
    case Pattern::kubernetes: return "kubernetes";
  }
  return "";
}

}  // namespace systole
