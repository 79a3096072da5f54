#include "operate/import/slurm_flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ground/base/letter_case.h"

namespace systole {
namespace {

using Value = FlagValue;

template <auto Member>
void count(Draft& draft, const Value& value) {
  if (const auto n = count_of(draft, value)) draft.ask(Member, *n, value.from);
}

// A whole number and a unit, of which Slurm reads only the letter: 4G, 64GB, 64GiB, 4096 (MiB).
std::optional<Bytes> slurm_bytes(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc() || count < 0) return std::nullopt;
  std::string unit = upper_case(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.ends_with("IB") && unit.size() == 3)
    unit.resize(1);
  else if (unit.ends_with("B") && unit.size() == 2)
    unit.resize(1);
  if (unit.empty()) unit = "M";
  constexpr std::string_view kUnits = "KMGTP";
  if (unit.size() != 1 || kUnits.find(unit[0]) == kUnits.npos) return std::nullopt;
  std::int64_t bytes = count;
  for (std::size_t u = 0; u <= kUnits.find(unit[0]); ++u)
    if (__builtin_mul_overflow(bytes, std::int64_t{1024}, &bytes)) return std::nullopt;
  return Bytes(bytes);
}

template <auto Member>
void memory(Draft& draft, const Value& value) {  // 0: all memory of the node
  const std::optional<Bytes> bytes = slurm_bytes(value.text);
  if (!bytes)
    return draft.wrong(
        error(ErrorKind::invalid, "{}: no size", value.from).hinted("a whole number and K, M, G or T, such as 4G"));
  if (bytes->count() == 0) return draft.left_out(value.from, "all of a node's: resources.memory says how much that is");
  draft.ask(Member, *bytes, value.from);
}

void text(Draft& draft, const Value& value, const char* key) { draft.set(key, value.text, value.from); }

// [D-]HH[:MM[:SS]], MM[:SS], HH:MM:SS
std::optional<std::int64_t> limit_seconds(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  const auto number = [](std::string_view part, std::int64_t& into) {
    const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), into);
    return failed == std::errc() && end == part.data() + part.size() && into >= 0 && into < 1'000'000;
  };
  if (dash != text.npos && !number(text.substr(0, dash), days)) return std::nullopt;
  if (dash != text.npos) text = text.substr(dash + 1);
  std::vector<std::int64_t> parts;
  for (std::string_view rest = text;;) {
    const std::size_t colon = rest.find(':');
    if (!number(rest.substr(0, colon), parts.emplace_back()) || parts.size() > 3) return std::nullopt;
    if (colon == rest.npos) break;
    rest = rest.substr(colon + 1);
  }
  if (dash == text.npos && parts.size() < 3) parts.insert(parts.begin(), 0);  // starts with minutes
  parts.resize(3);
  return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

// [TYPE:]N, or TYPE, which means one.
template <auto Member, std::int64_t kLeast>
void typed_gpus(Draft& draft, const Value& value) {
  const std::size_t colon = value.text.rfind(':');
  std::string type = value.text.substr(0, colon == value.text.npos ? 0 : colon);
  Value number{colon == value.text.npos ? value.text : value.text.substr(colon + 1), value.from};
  const bool counted = number.text.find_first_not_of("0123456789") == number.text.npos && !number.text.empty();
  const bool named =
      !number.text.empty() && std::isalnum(static_cast<unsigned char>(number.text[0])) != 0 &&
      number.text.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != number.text.npos;
  if (!counted && named) {
    type = value.text;
    number.text = "1";
  }
  const auto n = count_of(draft, number, kLeast);
  if (!n) return;
  if (!type.empty()) draft.set("slurm.gpu_type", type, value.from);
  draft.ask(Member, *n, value.from);
}

constexpr auto gpus_of_node = typed_gpus<&RequestedResources::gpus_per_node, 0>;
constexpr auto gpus_of_task = typed_gpus<&RequestedResources::gpus_per_task, 0>;
constexpr auto gpus = typed_gpus<&RequestedResources::gpus, 1>;

// The part after "gpu", "gres/gpu" and the like; nothing: another resource.
std::optional<std::string> gpu_part(std::string part) {
  for (const std::string_view kind : {"gres/", "gres:"})
    if (part.starts_with(kind)) part = part.substr(kind.size());
  if (!part.starts_with("gpu") || (part.size() > 3 && part[3] != ':' && part[3] != '=')) return std::nullopt;
  if (const std::size_t sockets = part.find('('); sockets != part.npos) part.resize(sockets);  // gpu:4(S:0-1)
  std::ranges::replace(part, '=', ':');
  return part.size() <= 4 ? "1" : part.substr(4);
}

void gres(Draft& draft, const Value& value) {  // gpu, gpu:4, gpu:a100, gpu:a100:4, others
  if (value.text == "none") return;
  for (const auto& [name, said] : pairs_of(value.text)) {
    const std::string part = said.empty() ? name : name + "=" + said;
    if (const auto count = gpu_part(part))
      gpus_of_node(draft, {*count, value.from});
    else
      draft.left_out("--gres=" + part, "only GPUs are asked for");
  }
}

void tres_of_task(Draft& draft, const Value& value) {  // cpu=4,gres/gpu:a100=1
  for (const auto& [name, said] : pairs_of(value.text)) {
    const std::string part = said.empty() ? name : name + "=" + said;
    if (name == "cpu") {
      if (const auto n = count_of(draft, {said, value.from}))
        draft.ask(&RequestedResources::cpus_per_task, *n, value.from);
    } else if (const auto count = gpu_part(part)) {
      gpus_of_task(draft, {*count, value.from});
    } else {
      draft.left_out("--tres-per-task=" + part, "only processors and GPUs are asked for");
    }
  }
}

void array(Draft& draft, const Value& value) {  // A-B[%N]
  const std::size_t percent = value.text.find('%');
  const Value range{value.text.substr(0, percent), value.from};
  const std::size_t dash = range.text.find('-');
  std::int64_t least = 0, most = 0;
  const auto number = [](std::string_view part, std::int64_t& into) {
    const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), into);
    return failed == std::errc() && end == part.data() + part.size() && into >= 0;
  };
  const std::string_view whole = range.text;
  if (!number(whole.substr(0, dash), least) || !number(dash == whole.npos ? whole : whole.substr(dash + 1), most)) {
    return draft.wrong(error(ErrorKind::unsupported, "{}: an array here is a range, 0-9 or 0-9%2", value.from)
                           .hinted("import it for each range"));
  }
  draft.set("slurm.array", fmt::format("{}:{}", least, most), value.from);
  if (percent == value.text.npos) return;
  if (const auto n = count_of(draft, {value.text.substr(percent + 1), value.from}))
    draft.set("slurm.at_once", *n, value.from);
}

// Render requests Slurm's signal a minute earlier than ranks need, because Slurm checks once a minute for jobs to
// signal.
void signal(Draft& draft, const Value& value) {  // [B:]NAME[@SECONDS]
  constexpr std::int64_t kSlack = 60;
  const std::size_t at = value.text.find('@');
  std::int64_t seconds = 60;
  if (at != value.text.npos) {
    const auto n = count_of(draft, {value.text.substr(at + 1), value.from}, 0);
    if (!n) return;
    seconds = *n;
  }
  const std::int64_t notice = std::max<std::int64_t>(1, seconds - kSlack);
  const std::string name = value.text.substr(0, at);
  if (name != "TERM" && name != "B:TERM" && name != "15")
    draft.left_out(value.from, "ranks get TERM, whatever Slurm is told to send");
  draft.notice(notice, value.from);
}

void exports(Draft& draft, const Value& value) {
  for (const auto& [name, said] : pairs_of(value.text)) {
    if (name == "ALL") continue;
    if (name == "NONE" || name == "NIL") {
      draft.left_out(value.from, "ranks inherit what the job has");
    } else if (said.empty()) {
      draft.left_out("--export=" + name, "ranks inherit it where the job has it");
    } else {
      draft.variable(name, said, value.from);
    }
  }
}

void nodes(Draft& draft, const Value& value) {
  if (const auto range = range_of(draft, value, '-')) draft.ask(&RequestedResources::nodes, *range, value.from);
}

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value, kPerhaps = Flag::Takes::perhaps;

constexpr std::string_view kPlaced = "which nodes and cores Slurm takes beyond resources: add the line to job.sbatch";
constexpr std::string_view kWhen = "when and whether Slurm begins it: add the line to job.sbatch";
constexpr std::string_view kLogs = "logs are kept with the run: systole logs";
constexpr std::string_view kMail = "nobody sends mail: systole runs, systole logs -f";
constexpr std::string_view kSubmitting = "it is how sbatch behaves, not what is run";
constexpr std::string_view kAccounting = "what is measured or shown of it: add the line to job.sbatch";
constexpr std::string_view kContainer = "Slurm starts no containers here; kubernetes does, by image";

constexpr Flag kSbatch[] = {
    // Keys of a workload.
    {"job-name", 'J', kValue, [](Draft& d, const Value& v) { text(d, v, "name"); }},
    {"partition", 'p', kValue, [](Draft& d, const Value& v) { text(d, v, "slurm.partition"); }},
    {"account", 'A', kValue, [](Draft& d, const Value& v) { text(d, v, "slurm.account"); }},
    {"qos", 'q', kValue, [](Draft& d, const Value& v) { text(d, v, "slurm.qos"); }},
    {"constraint", 'C', kValue, [](Draft& d, const Value& v) { text(d, v, "slurm.constraint"); }},
    {"reservation", '\0', kValue, [](Draft& d, const Value& v) { text(d, v, "slurm.reservation"); }},
    {"nodes", 'N', kValue, nodes},
    {"ntasks", 'n', kValue, count<&RequestedResources::tasks>},
    {"ntasks-per-node", '\0', kValue, count<&RequestedResources::tasks_per_node>},
    {"tasks-per-node", '\0', kValue, count<&RequestedResources::tasks_per_node>},
    {"cpus-per-task", 'c', kValue, count<&RequestedResources::cpus_per_task>},
    {"cpus-per-gpu", '\0', kValue, count<&RequestedResources::cpus_per_gpu>},
    {"gpus", 'G', kValue, gpus},
    {"gpus-per-node", '\0', kValue, gpus_of_node},
    {"gpus-per-task", '\0', kValue, gpus_of_task},
    {"gres", '\0', kValue, gres},
    {"mem", '\0', kValue, memory<&RequestedResources::memory_per_node>},
    {"mem-per-cpu", '\0', kValue, memory<&RequestedResources::memory_per_cpu>},
    {"mem-per-gpu", '\0', kValue, memory<&RequestedResources::memory_per_gpu>},
    {"time", 't', kValue, read_time_limit},
    {"array", 'a', kValue, array},
    {"signal", '\0', kValue, signal},
    {"export", '\0', kValue, exports},
    {"no-requeue", '\0', kNothing, [](Draft& d, const Value& v) { d.set("ranks.retries", 0, v.from); }},
    // Render writes these anyway.
    {"requeue", '\0', kNothing},
    {"open-mode", '\0', kValue},
    {"no-kill", 'k', kPerhaps},
    {"exclusive", '\0', kPerhaps},
    {"parsable", '\0', kNothing},
    {"output", 'o', kValue, nullptr, kLogs},
    {"error", 'e', kValue, nullptr, kLogs},
    {"input", 'i', kValue, nullptr, "ranks have no standard input"},
    {"comment", '\0', kValue, nullptr, "the comment is how systole finds it again"},
    // Replaced by other means.
    {"dependency", 'd', kValue, nullptr, "systole submit --after RUN"},
    {"kill-on-invalid-dep", '\0', kValue, nullptr, "systole submit --after RUN"},
    {"chdir", 'D', kValue, nullptr, "submit it from there; folder says where its runs lie"},
    {"mail-type", '\0', kValue, nullptr, kMail},
    {"mail-user", '\0', kValue, nullptr, kMail},
    {"export-file", '\0', kValue, nullptr, "env has the variables"},
    {"get-user-env", '\0', kPerhaps, nullptr, "env has the variables"},
    {"container", '\0', kValue, nullptr, kContainer},
    {"container-id", '\0', kValue, nullptr, kContainer},
    {"container-type", '\0', kValue, nullptr, kContainer},
    {"time-min", '\0', kValue, nullptr, "it is begun again where its time is up: resources.longest alone counts"},
    {"ntasks-per-gpu", '\0', kValue, nullptr, "say resources.ranks_per_node"},
    {"mincpus", '\0', kValue, nullptr, "say resources.threads"},
    {"tmp", '\0', kValue, nullptr, kPlaced},
    // Placement.
    {"nodelist", 'w', kValue, nullptr, kPlaced},
    {"nodefile", 'F', kValue, nullptr, kPlaced},
    {"exclude", 'x', kValue, nullptr, kPlaced},
    {"prefer", '\0', kValue, nullptr, kPlaced},
    {"cluster-constraint", '\0', kValue, nullptr, kPlaced},
    {"clusters", 'M', kValue, nullptr, kPlaced},
    {"cluster", '\0', kValue, nullptr, kPlaced},
    {"contiguous", '\0', kNothing, nullptr, kPlaced},
    {"switches", '\0', kValue, nullptr, kPlaced},
    {"spread-job", '\0', kNothing, nullptr, kPlaced},
    {"spread-segments", '\0', kNothing, nullptr, kPlaced},
    {"consolidate-segments", '\0', kNothing, nullptr, kPlaced},
    {"segment", '\0', kValue, nullptr, kPlaced},
    {"use-min-nodes", '\0', kNothing, nullptr, kPlaced},
    {"oversubscribe", 's', kNothing, nullptr, kPlaced},
    {"overcommit", 'O', kNothing, nullptr, kPlaced},
    {"distribution", 'm', kValue, nullptr, kPlaced},
    {"core-spec", 'S', kValue, nullptr, kPlaced},
    {"thread-spec", '\0', kValue, nullptr, kPlaced},
    {"cores-per-socket", '\0', kValue, nullptr, kPlaced},
    {"sockets-per-node", '\0', kValue, nullptr, kPlaced},
    {"threads-per-core", '\0', kValue, nullptr, kPlaced},
    {"extra-node-info", 'B', kValue, nullptr, kPlaced},
    {"ntasks-per-core", '\0', kValue, nullptr, kPlaced},
    {"ntasks-per-socket", '\0', kValue, nullptr, kPlaced},
    {"ntasks-per-tres", '\0', kValue, nullptr, kPlaced},
    {"gpus-per-socket", '\0', kValue, nullptr, kPlaced},
    {"gpu-bind", '\0', kValue, nullptr, kPlaced},
    {"gpu-freq", '\0', kValue, nullptr, kPlaced},
    {"gres-flags", '\0', kValue, nullptr, kPlaced},
    {"cpu-freq", '\0', kValue, nullptr, kPlaced},
    {"mem-bind", '\0', kValue, nullptr, kPlaced},
    {"mem-update", '\0', kValue, nullptr, kPlaced},
    {"hint", '\0', kValue, nullptr, kPlaced},
    {"tres-bind", '\0', kValue, nullptr, kPlaced},
    {"tres-per-task", '\0', kValue, tres_of_task},
    {"resources", '\0', kValue, nullptr, kPlaced},
    {"network", '\0', kValue, nullptr, kPlaced},
    {"resv-ports", '\0', kPerhaps, nullptr, kPlaced},
    {"stepmgr", '\0', kNothing, nullptr, kPlaced},
    {"external", '\0', kNothing, nullptr, kPlaced},
    {"licenses", 'L', kValue, nullptr, kPlaced},
    {"bb", '\0', kValue, nullptr, kPlaced},
    {"bbf", '\0', kValue, nullptr, kPlaced},
    {"oom-kill-step", '\0', kPerhaps, nullptr, kPlaced},
    // Start times.
    {"begin", 'b', kValue, nullptr, kWhen},
    {"deadline", '\0', kValue, nullptr, kWhen},
    {"delay-boot", '\0', kValue, nullptr, kWhen},
    {"hold", 'H', kNothing, nullptr, kWhen},
    {"nice", '\0', kPerhaps, nullptr, kWhen},
    {"priority", '\0', kValue, nullptr, kWhen},
    {"reboot", '\0', kNothing, nullptr, kWhen},
    {"wait-all-nodes", '\0', kValue, nullptr, kWhen},
    // Accounts and measurements.
    {"uid", '\0', kValue, nullptr, "as whom it runs is whoever submits it"},
    {"gid", '\0', kValue, nullptr, "as whom it runs is whoever submits it"},
    {"propagate", '\0', kPerhaps, nullptr, kAccounting},
    {"wckey", '\0', kValue, nullptr, kAccounting},
    {"mcs-label", '\0', kValue, nullptr, kAccounting},
    {"context", '\0', kValue, nullptr, kAccounting},
    {"extra", '\0', kValue, nullptr, kAccounting},
    {"acctg-freq", '\0', kValue, nullptr, kAccounting},
    {"profile", '\0', kValue, nullptr, kAccounting},
    // sbatch's own behaviour.
    {"wait", 'W', kNothing, nullptr, kSubmitting},
    {"quiet", 'Q', kNothing, nullptr, kSubmitting},
    {"verbose", 'v', kNothing, nullptr, kSubmitting},
    {"ignore-pbs", '\0', kNothing, nullptr, kSubmitting},
    {"test-only", '\0', kNothing, nullptr, kSubmitting},
    {"autocomplete", '\0', kValue, nullptr, kSubmitting},
    {"help", 'h', kNothing, nullptr, kSubmitting},
    {"usage", '\0', kNothing, nullptr, kSubmitting},
    {"version", 'V', kNothing, nullptr, kSubmitting},
    {"batch", '\0', kValue, nullptr, kPlaced},
    {"wrap", '\0', kValue, nullptr, "import what it holds as a script of its own", true},
};

constexpr std::string_view kAgent = "the agent starts the ranks, and does so itself";

constexpr Flag kSrun[] = {
    {"container-image", '\0', kValue, [](Draft& d, const Value& v) { text(d, v, "image"); }},
    {"container-mounts", '\0', kValue, nullptr,
     "folders of its nodes; volumes mounts claims, NFS and buckets, on kubernetes"},
    {"container-workdir", '\0', kValue, nullptr, kContainer},
    {"container-name", '\0', kValue, nullptr, kContainer},
    {"no-container-mount-home", '\0', kNothing, nullptr, kContainer},
    {"container-mount-home", '\0', kNothing, nullptr, kContainer},
    {"mpi", '\0', kValue, nullptr, kAgent},
    {"cpu-bind", '\0', kValue, nullptr, kAgent},
    {"accel-bind", '\0', kValue, nullptr, kAgent},
    {"kill-on-bad-exit", 'K', kPerhaps, nullptr, ""},
    {"label", 'l', kNothing, nullptr, ""},
    {"unbuffered", 'u', kNothing, nullptr, ""},
    {"disable-status", 'X', kNothing, nullptr, ""},
    {"exact", '\0', kNothing, nullptr, kAgent},
    {"overlap", '\0', kNothing, nullptr, kAgent},
    {"immediate", 'I', kPerhaps, nullptr, kSubmitting},
    {"jobid", '\0', kValue, nullptr, kSubmitting},
    {"relative", 'r', kValue, nullptr, kPlaced},
    {"task-prolog", '\0', kValue, nullptr, kAgent},
    {"task-epilog", '\0', kValue, nullptr, kAgent},
    {"prolog", '\0', kValue, nullptr, kAgent},
    {"epilog", '\0', kValue, nullptr, kAgent},
    {"slurmd-debug", '\0', kValue, nullptr, kSubmitting},
    {"pty", '\0', kPerhaps, nullptr, "ranks have no terminal"},
    {"multi-prog", '\0', kNothing, nullptr, "a workload is one program", true},
    {"het-group", '\0', kValue, nullptr, "nodes of a workload are all alike", true},
    {"bcast", '\0', kPerhaps, nullptr, "the files of a run travel by themselves"},
};

}  // namespace

void read_time_limit(Draft& draft, const FlagValue& value) {
  const std::optional<std::int64_t> seconds = limit_seconds(value.text);
  if (!seconds || *seconds == 0) return draft.left_out(value.from, "no limit that could be said");
  draft.set("resources.longest", fmt::format("{}s", *seconds), value.from);
}

std::span<const Flag> sbatch_flags() { return kSbatch; }
std::span<const Flag> srun_flags() { return kSrun; }

}  // namespace systole
