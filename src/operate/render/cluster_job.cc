#include "operate/render/cluster_job.h"

#include "describe/spec/run_name.h"
#include "describe/spec/target_needs.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "operate/render/job_budget.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

// A model's ranks must equal the devices of its mesh.
Status check_mesh(const Workload& w, const ClusterJob& job) {
  const std::int64_t devices = w.num_devices();
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

// The largest part of a job's accelerators that fits one machine, as an argument of `systole plan --on`.
std::string on_one_machine(const RenderRequest& ask, const ClusterJob& job) {
  if (!job.slice) return job.machine->name + ":1";
  const TpuSlice* most = nullptr;
  for (const TpuSlice& slice : ask.facts.slices)
    if (slice.accelerator == job.slice->accelerator && slice.hosts == 1 &&
        (most == nullptr || most->chips < slice.chips))
      most = &slice;
  return most == nullptr ? job.slice->accelerator : most->by_shape();
}

Status check_model(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  if (job.nodes.elastic())
    return key_error(ErrorKind::unsupported, "resources.nodes", "{}:{}: a model's ranks are the devices of its mesh",
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

// The agents' budget arguments. The ledger is in SYSTOLE_STATE if set, otherwise in the run.
Result<std::string> budget_arguments(const RenderRequest& ask, const ClusterJob& job) {
  const std::optional<Seconds> time = TRY(budget_time(ask.workload, job.usd_per_hour, job.nodes.most));
  if (!time) return std::string();
  return fmt::format(" --budget-time {:.3f}s ${{SYSTOLE_STATE:+--ledger \"$SYSTOLE_STATE/ledger\"}}", time->count());
}

void check_texts(const Workload& w, std::vector<Error>& wrong) {
  const auto look = [&](const std::string& text, const char* key) {
    if (text.find('\0') != text.npos)
      wrong.push_back(key_error(ErrorKind::invalid, key, "a NUL can stand in no environment or command"));
  };
  for (const std::string& word : w.command) look(word, "command");
  std::size_t size = 0;
  for (const auto& [name, value] : w.env) {
    look(value, "env");
    size += name.size() + value.size();
  }
  constexpr std::size_t kMostEnvironment = 128 << 10;  // Linux limit for one string of argv or environ
  if (size > kMostEnvironment)
    wrong.push_back(key_error(ErrorKind::invalid, "env", "{} KiB of environment; 128 KiB can be given", size >> 10)
                        .hinted("a file that the program reads"));
  look(w.folder, "folder");
  look(w.resume.from, "resume.from");
}

}  // namespace

bool is_production(const RenderRequest& ask) { return ask.environment.starts_with("prod"); }

Result<std::string> run_name(const std::string& asked, const Workload& workload) {
  if (const auto at_sign = taken_for_checkpoint(asked))
    return error(ErrorKind::invalid, "--run: '{}' cannot name a run: {}", asked, at_sign->why)
        .hinted("--run " + shell_word(at_sign->instead));
  return dns_label(asked.empty() ? workload.name : asked, kMostRunName, "a run");
}

Result<ClusterJob> cluster_job(const RenderRequest& ask, const JobDefaults& defaults) {
  const Workload& w = ask.workload;
  ClusterJob job;
  std::vector<Error> wrong;
  const auto note = [&](Error e) { wrong.push_back(std::move(e)); };
  if (Result<std::string> run = run_name(ask.run, w); run.ok()) {
    job.run = *run;
  } else {
    note(run.error());
  }
  job.nodes = w.resources.nodes.value_or(CountRange{defaults.nodes, defaults.nodes});
  job.gpus_per_node = w.resources.gpus_per_node.value_or(0);
  if (const Status hardware = set_hardware(ask, job); !hardware.ok()) note(hardware.error());
  const bool serves = w.kind == Workload::Kind::serve, model = w.command.empty() && !serves;
  job.launcher = defaults.launcher;
  // A model uses all GPUs of its node in one process. Programs get one GPU per process, unless they are started once.
  const bool once = model || serves || job.launcher == KubernetesSpec::Launcher::program || job.gpus_per_node == 0;
  job.ranks_per_node = w.resources.ranks_per_node.value_or(once ? 1 : job.gpus_per_node);
  job.longest = w.resources.longest;
  job.notice = w.ranks.notice.value_or(RanksSpec::kNotice);
  job.retries = w.ranks.retries.value_or(RanksSpec::kRetries);
  if (serves && w.num_devices() > 1 && job.devices_per_node() > 0)
    note(key_error(ErrorKind::unsupported, "mesh", "a server on {} has its model in one of them",
                   job.tpu() ? "TPUs" : "GPUs")
             .hinted("leave mesh out; on processors, without resources.accelerators, it says --ranks"));
  if (serves && wrong.empty())
    if (const Status servers = set_replicas(ask, job, defaults.replicas); !servers.ok()) note(servers.error());
  job.folder = w.folder.empty() ? "runs" : w.folder;
  if (job.folder.starts_with('-')) job.folder = "./" + job.folder;
  check_texts(w, wrong);
  if (model) {
    if (const Status agreed = check_model(ask, job); !agreed.ok()) note(agreed.error());
  } else if (ask.plan != nullptr) {
    note(error(ErrorKind::invalid, "--plan: a program of your own (command) has no plan").hinted("leave --plan out"));
  }
  const std::int64_t at_once = serves ? 1 : job.nodes.most;  // servers need not start at once
  for (Error& one : lacking(*ask.target, {.workload = w, .nodes = at_once, .tpus = job.tpu(), .hardware = job.on}))
    note(std::move(one));
  job.usd_per_hour = usd_per_hour(w, ask.plan, job.nodes.most);
  if (!job.usd_per_hour && ask.plan == nullptr && wrong.empty() && defaults.listed_price)
    job.usd_per_hour = defaults.listed_price(job);
  const Result<std::string> budget = budget_arguments(ask, job);
  if (!budget.ok()) note(budget.error());
  if (!wrong.empty()) return together(std::move(wrong));
  if (serves) return job;
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
  return key_error(ErrorKind::unsupported, key, "{}", why)
      .hinted(fmt::format("take {} out: its nodes see folder and data as they are; or render for kubernetes", key));
}

Status refuse_secrets(const Workload& w, SecretReference::Source source, const char* why, const char* hint) {
  for (const auto& [name, text] : w.secrets)
    if (const auto reference = read_secret_reference(text); reference && reference->source == source)
      return key_error(ErrorKind::unsupported, "secrets", "{} ({}): {}", name, text, why).hinted(hint);
  return {};
}

std::string made_from(const RenderRequest& ask, const ClusterJob& job) {
  return fmt::format("# {}: {} on {}, workload {:.12}{}\n", ask.version, job.run, ask.target->name,
                     ask.workload_file.sha256,
                     ask.plan == nullptr ? "" : fmt::format(", plan {:.12}", ask.plan_file.sha256));
}

std::vector<RenderedFile> carried_files(const RenderRequest& ask) {
  std::vector<RenderedFile> files{{"workload.yaml", ask.workload_file.text}};
  if (ask.plan != nullptr) files.push_back({"plan.json", ask.plan_file.text});
  return files;
}

}  // namespace systole
