#include "operate/render/network_profile.h"

#include "operate/render/quote.h"

namespace systole {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH";

const char* script_of(NcclProfile kind) {
  switch (kind) {
    case NcclProfile::tcpxo: return "$NCCL_LIB_DIR/nccl-env-profile.sh";
    case NcclProfile::rdma:
    case NcclProfile::rdma_mnnvl: return "/usr/local/gib/scripts/set_nccl_env.sh";
    default: return "";
  }
}

void take(const NcclRow& row, const Workload& w, const std::string& machine, NetworkProfile& profile) {
  const auto said = w.env.find(row.variable);
  if (said == w.env.end()) {
    if (row.variable == kLibraryPath) {
      profile.library_path = row.value;
    } else {
      profile.variables.push_back(&row);
    }
  } else if (said->second != row.value) {
    profile.warnings.push_back(fmt::format("env: {} is {}; {} would have {}: {}", row.variable,
                                           comment_text(said->second), machine, row.value, row.reason));
  }
}

}  // namespace

Result<std::optional<NetworkProfile>> network_profile(const RenderRequest& ask, const ClusterJob& job,
                                                      NcclScheduler where) {
  std::optional<NetworkProfile> profile;
  if (job.alone() || job.gpus_per_node == 0 || job.machine == nullptr) return profile;
  for (const NcclRow& row : ask.facts.nccl) {
    if (!row.is_of(job.machine->name, where)) continue;
    if (!profile) profile.emplace().kind = row.profile;
    take(row, ask.workload, job.machine->name, *profile);
  }
  if (!profile) return profile;
  profile->script = script_of(profile->kind);
  const auto all = static_cast<std::int64_t>(job.machine->accelerators);
  if (profile->is_direct() && job.gpus_per_node != all)
    return key_error(ErrorKind::invalid, "resources.gpus_per_node",
                     "{}: the network of {} is of all its {} GPUs together", job.gpus_per_node, job.machine->name, all)
        .hinted(fmt::format("resources.gpus_per_node: {}", all));
  return profile;
}

std::string network_shell(const NetworkProfile& profile) {
  std::string text;
  if (!profile.script.empty()) {
    text += fmt::format(
        R"sh(if [ -z "${{SYSTOLE_NETWORK:-}}" ]; then # what the node's own script of bash says of its network
  SYSTOLE_NETWORK="{}"
  export SYSTOLE_NETWORK
  [ -r "$SYSTOLE_NETWORK" ] || {{
    echo "systole: $(uname -n) has no $SYSTOLE_NETWORK" >&2
    exit 3
  }}
  exec bash -c '. "$SYSTOLE_NETWORK"; exec /bin/sh "$0"' "$0"
fi
)sh",
        profile.script);
  }
  if (!profile.library_path.empty())
    text += fmt::format("export LD_LIBRARY_PATH={}\"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n",
                        shell_word(profile.library_path));
  return text;
}

std::string network_exports(const NetworkProfile& profile) {
  std::string text;
  for (const NcclRow* row : profile.variables)
    text += fmt::format("export {}={} # {}\n", row->variable, shell_word(row->value), comment_text(row->reason));
  return text + network_shell(profile);
}

}  // namespace systole
