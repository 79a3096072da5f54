#include "operate/render/start_script.h"

#include "operate/render/quote.h"

namespace systole {
namespace {

// Exit code 3: this machine lacks something (docs/reference/exit-codes.md), so a retry does not help.
constexpr const char* kVerify = R"sh(
refuse() {
  echo "systole: $1" >&2
  exit 3
}
verify() { # FILE SHA256
  [ -r "$1" ] || refuse "cannot read $1 on $(uname -n)"
  [ "$(sha256sum <"$1")" = "$2  -" ] || refuse "$1 on $(uname -n) is not the file that was rendered"
}
)sh";
constexpr const char* kFindProgram = R"sh(
program=$(command -v -- "${SYSTOLE:-systole}") || refuse "no program '${SYSTOLE:-systole}' on $(uname -n)"
)sh";

}  // namespace

std::string start_script(const RenderRequest& ask, const ClusterJob& job, const StartScriptValues& values) {
  std::string text = "#!/bin/sh\n" + made_from(ask, job) +
                     fmt::format("# Runs on each node: holds the files to their digests, then is {}.\nset -eu\n",
                                 !values.serve.empty()  ? "the server of this node"
                                 : values.start.empty() ? "the agent of this node"
                                                        : "the program, or what starts its ranks");
  text += values.before;
  text += fmt::format("files={}\n", values.files);
  if (values.start.empty() && values.serve.empty()) text += fmt::format("folder={}\n", values.folder);
  text += kVerify + 1;
  if (values.start.empty()) text += fmt::format("{}verify \"$program\" {}\n", kFindProgram + 1, ask.program_sha256);
  text += fmt::format("verify \"$files/workload.yaml\" {}\n", ask.workload_file.sha256);
  if (ask.plan != nullptr) text += fmt::format("verify \"$files/plan.json\" {}\n", ask.plan_file.sha256);
  if (!values.start.empty()) return text + values.start + "\n";
  if (!values.serve.empty()) return text + "exec " + values.serve + "\n";
  std::string run = ask.plan != nullptr ? "--plan \"$files/plan.json\"" : "\"$files/workload.yaml\"";
  if (!values.seed.empty())
    run += fmt::format(" --set \"train.seed=$(({} + {}))\"", ask.workload.train.seed, values.seed);
  text += fmt::format("exec \"$program\" run {} --folder \"$folder\" --or-resume{}", run, job.run_arguments);
  if (!values.metrics.empty()) text += " --metrics " + values.metrics;
  if (!values.leader.empty()) {
    text += fmt::format(" \\\n  --rendezvous \"{}:{}\" --token-file \"{}\" --node \"{}\"", values.leader, values.port,
                        values.token_file, values.node);
    if (!values.more.empty()) text += " " + values.more;
    if (!values.host.empty()) text += fmt::format(" --host \"{}\"", values.host);
  }
  return text + "\n";
}

}  // namespace systole
