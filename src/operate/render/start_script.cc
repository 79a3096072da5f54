#include "operate/render/start_script.h"

#include "operate/render/quote.h"

namespace systole {
namespace {

// 3: this machine lacks something (docs/reference/exit-codes.md), which no retry brings.
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

std::string start_script(const RenderAsk& ask, const ClusterJob& job, const Meeting& meeting) {
  std::string text =
      "#!/bin/sh\n" + made_from(ask, job) +
      fmt::format("# Runs on each node: holds the files to their digests, then is {}.\nset -eu\n",
                  meeting.start.empty() ? "the agent of this node" : "the program, or what starts its ranks");
  text += meeting.before;
  text += fmt::format("files={}\n", meeting.files);
  if (meeting.start.empty()) text += fmt::format("folder={}\n", meeting.folder);
  text += kVerify + 1;
  if (meeting.start.empty()) text += fmt::format("{}verify \"$program\" {}\n", kFindProgram + 1, ask.program_sha256);
  text += fmt::format("verify \"$files/workload.yaml\" {}\n", ask.workload_file.sha256);
  if (ask.plan != nullptr) text += fmt::format("verify \"$files/plan.json\" {}\n", ask.plan_file.sha256);
  if (!meeting.start.empty()) return text + meeting.start + "\n";
  std::string run = ask.plan != nullptr ? "--plan \"$files/plan.json\"" : "\"$files/workload.yaml\"";
  if (!meeting.seed.empty())
    run += fmt::format(" --set \"train.seed=$(({} + {}))\"", ask.workload.train.seed, meeting.seed);
  text += fmt::format("exec \"$program\" run {} --folder \"$folder\" --or-resume{}", run, job.run_arguments);
  if (!meeting.metrics.empty()) text += " --metrics " + meeting.metrics;
  if (!meeting.leader.empty()) {
    text += fmt::format(" \\\n  --rendezvous \"{}:{}\" --token-file \"{}\" --node \"{}\"", meeting.leader, meeting.port,
                        meeting.token_file, meeting.node);
    if (!meeting.more.empty()) text += " " + meeting.more;
    if (!meeting.host.empty()) text += fmt::format(" --host \"{}\"", meeting.host);
  }
  return text + "\n";
}

}  // namespace systole
