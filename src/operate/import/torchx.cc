// torchx run [-s SCHEDULER] [-cfg K=V,...] dist.ddp FLAGS -- ARGUMENTS: roles become nodes and ranks.
#include <map>

#include "operate/import/flags.h"
#include "operate/import/launchers.h"
#include "operate/import/slurm_flags.h"

namespace systole {
namespace {

using Value = FlagValue;

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value;
constexpr std::string_view kItself = "it is how torchx behaves, not what is run";

// Why a scheduler's setting has no key.
std::string_view why_not(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"priority_class", "a priority of Volcano's; kubernetes.priority is one of Kueue's"},
      {"comment", "the comment is how systole finds it again"},
      {"mail-user", "nobody sends mail: systole runs, systole logs -f"},
      {"mail-type", "nobody sends mail: systole runs, systole logs -f"},
      {"job_dir", "folder says where its runs lie"},
      {"log_dir", "logs are kept with the run: systole logs"},
      {"prepend_cwd", "a program is looked for where the run is started"},
      {"auto_set_cuda_visible_devices", "the agent gives each rank its devices"},
      {"copy_env", "env has the variables"},
      {"env", "env has the variables"},
      {"privileged", "a pod has no rights beyond its own"},
      {"quiet", kItself},
  };
  for (const auto& [known, why] : kReasons)
    if (known == name) return why;
  return "it is of that scheduler of torchx alone";
}

// A scheduler's settings.
void config(Draft& draft, const Value& value) {
  for (const auto& [name, said] : pairs_of(value.text)) {
    const std::string from = "-cfg " + name + "=" + said;
    if (name == "namespace") {
      draft.set("kubernetes.namespace", said, from);
    } else if (name == "service_account") {
      draft.set("kubernetes.service_account", said, from);
    } else if (name == "partition") {
      draft.set("slurm.partition", said, from);
    } else if (name == "constraint") {
      draft.set("slurm.constraint", said, from);
    } else if (name == "time") {
      read_time_limit(draft, {said, from});
    } else if (name == "queue") {
      draft.left_out(from, "a queue of Volcano's; kubernetes.queue is one of Kueue's");
    } else if (name == "image_repo") {
      draft.left_out(from, "image names the whole image; systole render --on docker builds it");
    } else {
      draft.left_out(from, std::string(why_not(name)));
    }
  }
}

constexpr Flag kRun[] = {
    {"scheduler", 's', kValue, nullptr, "systole render --on and systole submit --on say where"},
    {"scheduler-args", '\0', kValue, config},
    {"cfg", '\0', kValue, config},
    {"dryrun", '\0', kNothing, nullptr, kItself},
    {"wait", '\0', kNothing, nullptr, kItself},
    {"log", '\0', kNothing, nullptr, kItself},
    {"tee-logs", '\0', kNothing, nullptr, kItself},
    {"workspace", '\0', kValue, nullptr, "the image has the files: systole render --on docker"},
    {"parent-run-id", '\0', kValue, nullptr, kItself},
    {"config", '\0', kValue, nullptr, "what that file says is not read"},
};

void shape(Draft& draft, const Value& value) {  // NODESxRANKS, MIN:MAXxRANKS, RANKS
  const std::size_t x = value.text.find('x');
  const Value ranks{x == value.text.npos ? value.text : value.text.substr(x + 1), value.from};
  const Value nodes{x == value.text.npos ? "1" : value.text.substr(0, x), value.from};
  if (const auto range = range_of(draft, nodes, ':')) draft.ask(&RequestedResources::nodes, *range, value.from);
  if (const auto n = count_of(draft, ranks)) draft.ask(&RequestedResources::launched_per_node, *n, value.from);
}

void variables(Draft& draft, const Value& value) {
  for (const auto& [name, said] : pairs_of(value.text)) draft.variable(name, said, value.from);
}

void cpus(Draft& draft, const Value& value) {
  if (const auto n = count_of(draft, value)) draft.ask(&RequestedResources::millicpus_per_node, *n * 1000, value.from);
}

void megabytes(Draft& draft, const Value& value) {
  if (const auto n = count_of(draft, value))
    draft.ask(&RequestedResources::memory_per_node, Bytes(*n * 1'000'000), value.from);
}

void gpus(Draft& draft, const Value& value) {
  if (const auto n = count_of(draft, value, 0); n && *n > 0)
    draft.ask(&RequestedResources::gpus_per_node, *n, value.from);
}

// One mount: type=volume,src=CLAIM,dst=/PATH[,readonly].
void mount(Draft& draft, const std::map<std::string, std::string>& keys, const std::string& from) {
  const auto said = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names)
      if (const auto found = keys.find(name); found != keys.end()) return found->second;
    return "";
  };
  const std::string type = said({"type"}), claim = said({"src", "source"});
  const std::string path = said({"dst", "destination", "target"});
  if (type == "bind") return draft.left_out(from, "a folder of its nodes; volumes mounts claims, NFS and buckets");
  if (type == "device") return draft.left_out(from, "a rank has the devices that resources say");
  if (type != "volume" || claim.empty() || !path.starts_with('/')) {
    draft.wrong(error(ErrorKind::invalid, "{}: no mount of torchx", origin(from))
                    .hinted("--mounts type=volume,src=CLAIM,dst=/data"));
    return;
  }
  std::vector<Draft::VolumeKey> volume = {{"claim", claim, from}};
  if (keys.contains("readonly") || keys.contains("read_only")) volume.push_back({"read_only", true, from});
  draft.set_volume(path, volume);
}

void mounts(Draft& draft, const Value& value) {  // several in a row, each beginning with its type
  std::map<std::string, std::string> keys;
  std::string from;
  const auto end = [&] {
    if (!keys.empty()) mount(draft, keys, "--mounts " + from);
    keys.clear();
    from.clear();
  };
  for (const auto& [name, said] : pairs_of(value.text)) {
    if (name == "type") end();
    keys[name] = said;
    from += (from.empty() ? "" : ",") + name + (said.empty() ? "" : "=" + said);
  }
  end();
}

// Flags of the component dist.ddp.
constexpr Flag kDdp[] = {
    {"j", 'j', kValue, shape},
    {"gpu", '\0', kValue, gpus},
    {"cpu", '\0', kValue, cpus},
    {"memMB", '\0', kValue, megabytes},
    {"name", '\0', kValue, [](Draft& d, const Value& v) { d.set("name", v.text, v.from); }},
    {"image", '\0', kValue, [](Draft& d, const Value& v) { d.set("image", v.text, v.from); }},
    {"env", '\0', kValue, variables},
    {"max-retries", '\0', kValue,
     [](Draft& d, const Value& v) {
       if (const auto n = count_of(d, v, 0)) d.set("ranks.retries", *n, v.from);
     }},
    {"script", '\0', kValue, nullptr, ""},
    {"m", 'm', kValue, nullptr, ""},
    {"h", 'h', kValue, nullptr, "what that machine has is known to torchx alone: say --cpu, --gpu and --memMB"},
    {"mounts", '\0', kValue, mounts},
    {"rdzv-port", '\0', kValue, nullptr, "the agents of the nodes find each other by themselves"},
    {"rdzv-backend", '\0', kValue, nullptr, "the agents of the nodes find each other by themselves"},
    {"rdzv-conf", '\0', kValue, nullptr, "the agents of the nodes find each other by themselves"},
    {"debug", '\0', kValue, nullptr, "env has such variables"},
    {"tee", '\0', kValue, nullptr, "each rank's lines are kept with the run: systole logs"},
    {"metadata", '\0', kValue, nullptr, "labels says such things"},
    {"role", '\0', kValue, nullptr, "all ranks are of one role"},
};

// The value of --script FILE, --script=FILE or -m MODULE.
const ShellWord* value_of(std::span<const ShellWord> words, std::string_view name, ShellWord& held) {
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (words[w].text == "--") break;
    if (words[w].text == name && w + 1 < words.size()) return &words[w + 1];
    if (words[w].text.starts_with(std::string(name) + "=")) {
      held = words[w];
      held.text = words[w].text.substr(name.size() + 1);
      held.raw = words[w].raw.substr(std::min(words[w].raw.size(), name.size() + 1));
      return &held;
    }
  }
  return nullptr;
}

}  // namespace

void read_torchx(std::span<const ShellWord> words, Draft& draft) {
  const std::string from = "torchx dist.ddp";
  if (words.empty() || words[0].text != "run") {
    draft.wrong(error(ErrorKind::unsupported, "torchx {}: only what `torchx run` starts is a workload",
                      words.empty() ? "" : origin(words[0].text))
                    .hinted("paste the line of torchx run"));
    return;
  }
  const std::vector<ShellWord> rest = read_flags(words.subspan(1), {kRun}, {.program = "torchx run"}, draft);
  if (rest.empty() || rest[0].text != "dist.ddp") {
    draft.wrong(error(ErrorKind::unsupported, "torchx run {}: only dist.ddp is known here",
                      rest.empty() ? "" : origin(rest[0].text))
                    .hinted("paste the line that it starts, such as python3 train.py"));
    return;
  }
  const std::span<const ShellWord> ddp = std::span<const ShellWord>(rest).subspan(1);
  std::vector<ShellWord> arguments = read_flags(ddp, {kDdp}, {.program = "dist.ddp"}, draft);
  std::vector<ShellWord> command = {plain_word("python3"), plain_word("-u")};
  ShellWord held;
  if (const ShellWord* script = value_of(ddp, "--script", held)) {
    command.push_back(*script);
  } else if (const ShellWord* module = value_of(ddp, "-m", held)) {
    command.push_back(plain_word("-m"));
    command.push_back(*module);
  } else {
    command.clear();
    arguments.clear();
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  set_command(std::move(command), {}, from, draft);
}

}  // namespace systole
