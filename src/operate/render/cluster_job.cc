#include "operate/render/cluster_job.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "operate/render/budget.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

constexpr std::size_t kMostName = 48;  // of a run, whatever the target adds

// The ranks that a model has are the devices of its mesh.
Status check_mesh(const Workload& w, const ClusterJob& job) {
  std::int64_t devices = 1;
  for (const auto& [axis, size] : w.mesh) devices *= size;
  if (job.ranks().most == devices) return {};
  if (w.mesh.empty()) {
    return error(ErrorKind::invalid, "{} on {}, and the workload has no mesh to lay them out",
                 counted(job.ranks().most, "rank"), counted(job.nodes.most, "node"))
        .hinted(fmt::format("mesh: {{ data: {} }}", job.ranks().most));
  }
  return error(ErrorKind::invalid, "the mesh has {}; {} of {} are {}", counted(devices, "device"),
               counted(job.nodes.most, "node"), counted(job.ranks_per_node, "rank"), job.ranks().most)
      .hinted(devices % job.ranks_per_node == 0
                  ? fmt::format("resources.nodes: {}, or another mesh", devices / job.ranks_per_node)
                  : fmt::format("resources.ranks_per_node: a divisor of {}, or another mesh", devices));
}

// The most of a job's accelerators that one machine has, as `systole plan --on` names them.
std::string on_one_machine(const RenderAsk& ask, const ClusterJob& job) {
  if (!job.slice) return job.machine->name + ":1";
  const TpuSlice* most = nullptr;
  for (const TpuSlice& slice : ask.facts.slices)
    if (slice.accelerator == job.slice->accelerator && slice.hosts == 1 &&
        (most == nullptr || most->chips < slice.chips))
      most = &slice;
  return most == nullptr ? job.slice->accelerator : most->by_shape();
}

Status check_model(const RenderAsk& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  if (job.nodes.elastic())
    return error(ErrorKind::unsupported, "resources.nodes: {}:{}: a model's ranks are the devices of its mesh",
                 job.nodes.least, job.nodes.most)
        .hinted(fmt::format("resources.nodes: {}; a program of your own (command) may have a range", job.nodes.most));
  if (job.devices_per_node() > 0 && !job.alone())
    return error(ErrorKind::unsupported, "a model runs on the {} of one node, and here are {} nodes",
                 job.tpu() ? "TPUs" : "GPUs", job.nodes.most)
        .hinted(job.machine == nullptr
                    ? "resources.nodes: 1; or on processors, without gpus_per_node; a program of your own "
                      "(command) runs on all"
                : ask.plan != nullptr
                    ? fmt::format("a plan for one machine: systole plan JOB.yaml --on {} --out plan.json; a program of "
                                  "your own (command) runs on all",
                                  on_one_machine(ask, job))
                    : fmt::format("resources.accelerators: {}; or none, and resources.nodes; a program of your own "
                                  "(command) runs on all",
                                  on_one_machine(ask, job)));
  if (job.devices_per_node() > 0) return {};  // one process has them all
  return check_mesh(w, job);
}

// Kubeflow's kinds have launchers of their own.
KubernetesSpec::Launcher launcher_of(const Workload& w) {
  using Kind = KubernetesSpec::Kind;
  using Launcher = KubernetesSpec::Launcher;
  if (w.kubernetes.launcher != Launcher::automatic) return w.kubernetes.launcher;
  switch (w.kubernetes.kind) {
    case Kind::pytorchjob:
    case Kind::trainjob: return Launcher::torchrun;
    case Kind::jaxjob: return Launcher::program;
    default: return Launcher::systole;
  }
}

// What the agents are told of the budget. The ledger is kept by whoever sets SYSTOLE_STATE, else by the run.
Result<std::string> budget_arguments(const RenderAsk& ask, const ClusterJob& job) {
  const std::optional<Seconds> time = TRY(budget_time(ask.workload, ask.plan, job.nodes.most));
  if (!time) return std::string();
  return fmt::format(" --budget-time {:.3f}s ${{SYSTOLE_STATE:+--ledger \"$SYSTOLE_STATE/ledger\"}}", time->count());
}

void check_texts(const Workload& w, std::vector<Error>& wrong) {
  const auto look = [&](const std::string& text, const char* key) {
    if (text.find('\0') != text.npos)
      wrong.push_back(error(ErrorKind::invalid, "{}: a NUL can stand in no environment or command", key));
  };
  for (const std::string& word : w.command) look(word, "command");
  std::size_t size = 0;
  for (const auto& [name, value] : w.env) {
    look(value, "env");
    size += name.size() + value.size();
  }
  constexpr std::size_t kMostEnvironment = 128 << 10;  // Linux takes no longer word
  if (size > kMostEnvironment)
    wrong.push_back(error(ErrorKind::invalid, "env: {} KiB of environment; 128 KiB can be given", size >> 10)
                        .hinted("a file that the program reads"));
  look(w.folder, "folder");
  look(w.resume.from, "resume.from");
}

}  // namespace

Result<std::string> run_name(const std::string& asked, const Workload& workload) {
  if (asked.find('@') != asked.npos) {
    std::string plain = asked;
    std::ranges::replace(plain, '@', '-');
    return error(ErrorKind::invalid, "--run: '{}' cannot name a run: it has an '@', and NAME@STEP names a checkpoint",
                 asked)
        .hinted("--run " + shell_word(plain));
  }
  return dns_label(asked.empty() ? workload.name : asked, kMostName, "a run");
}

Result<ClusterJob> cluster_job(const RenderAsk& ask) {
  const Workload& w = ask.workload;
  ClusterJob job;
  std::vector<Error> wrong;
  const auto note = [&](Error e) { wrong.push_back(std::move(e)); };
  if (Result<std::string> run = run_name(ask.run, w); run.ok()) {
    job.run = *run;
  } else {
    note(run.error());
  }
  // Without any the target asks for them.
  const auto hosts =
      static_cast<std::int64_t>(ask.target == RenderTarget::ssh ? std::max<std::size_t>(w.ssh.hosts.size(), 1) : 1);
  job.nodes = w.resources.nodes.value_or(CountRange{hosts, hosts});
  job.gpus_per_node = w.resources.gpus_per_node.value_or(0);
  if (const Status hardware = set_hardware(ask, job); !hardware.ok()) note(hardware.error());
  const bool model = w.command.empty();
  if (ask.target == RenderTarget::kubernetes || ask.target == RenderTarget::gke) job.launcher = launcher_of(w);
  // A model has the GPUs of its node in one process; programs have one each, unless they are started once.
  const bool once = model || job.launcher == KubernetesSpec::Launcher::program || job.gpus_per_node == 0;
  job.ranks_per_node = w.resources.ranks_per_node.value_or(once ? 1 : job.gpus_per_node);
  job.longest = w.resources.longest;
  job.notice = w.ranks.notice.value_or(RanksSpec::kNotice);
  job.retries = w.ranks.retries.value_or(RanksSpec::kRetries);
  job.folder = w.folder.empty() ? "runs" : w.folder;
  if (job.folder.starts_with('-')) job.folder = "./" + job.folder;
  check_texts(w, wrong);
  if (model) {
    if (const Status agreed = check_model(ask, job); !agreed.ok()) note(agreed.error());
  } else if (ask.plan != nullptr) {
    note(error(ErrorKind::invalid, "--plan: a program of your own (command) has no plan").hinted("leave --plan out"));
  }
  if (job.tpu() && ask.target == RenderTarget::slurm)
    note(error(ErrorKind::unsupported, "{}: Slurm has no TPUs", job.on).hinted("--on kubernetes"));
  job.usd_per_hour = usd_per_hour(w, ask.plan, job.nodes.most);
  const Result<std::string> budget = budget_arguments(ask, job);
  if (!budget.ok()) note(budget.error());
  if (!wrong.empty()) return together(std::move(wrong));
  const CountRange ranks = job.ranks();
  if (!model || ranks.most > 1)
    job.run_arguments = ranks.elastic() ? fmt::format(" --ranks {}:{}", ranks.least, ranks.most)
                                        : fmt::format(" --ranks {}", ranks.most);
  if (!model || !job.alone()) job.run_arguments += fmt::format(" --local-ranks {}", job.ranks_per_node);
  if (model && job.devices_per_node() > 0) job.run_arguments += job.tpu() ? " --device tpu" : " --device gpu";
  job.run_arguments += *budget;
  return job;
}

Status refuse_volumes(const Workload& w, const char* why) {
  if (w.claims.empty() && w.volumes.empty()) return {};
  const char* key = w.claims.empty() ? "volumes" : "claims";
  return error(ErrorKind::unsupported, "{}: {}", key, why)
      .hinted(fmt::format("take {} out: its nodes see folder and data as they are; or render for kubernetes", key));
}

Status refuse_secrets(const Workload& w, SecretReference::Source source, const char* why, const char* hint) {
  for (const auto& [name, text] : w.secrets)
    if (const auto reference = read_secret_reference(text); reference && reference->source == source)
      return error(ErrorKind::unsupported, "secrets: {} ({}): {}", name, text, why).hinted(hint);
  return {};
}

std::string made_from(const RenderAsk& ask, const ClusterJob& job) {
  return fmt::format("# {}: {} on {}, workload {:.12}{}\n", ask.version, job.run, name_of(ask.target),
                     ask.workload_file.sha256,
                     ask.plan == nullptr ? "" : fmt::format(", plan {:.12}", ask.plan_file.sha256));
}

std::vector<RenderedFile> carried_files(const RenderAsk& ask) {
  std::vector<RenderedFile> files{{"workload.yaml", ask.workload_file.text}};
  if (ask.plan != nullptr) files.push_back({"plan.json", ask.plan_file.text});
  return files;
}

}  // namespace systole
