#include "operate/import/gcloud_told.h"

#include <algorithm>
#include <span>

namespace systole {
namespace {

struct Told {
  std::string_view what, why;
};

constexpr std::string_view kBucket = "volumes mounts a bucket that is there: { /data: { bucket: NAME } }";
constexpr std::string_view kUndo = "systole render --on gcloud says the line that takes its machines away again";
constexpr std::string_view kShows = "it shows what there is in the project: systole runs shows the runs";

// The first match by prefix counts.
constexpr Told kCommands[] = {
    {"ai custom-jobs stream-logs", "a run's lines are kept with it: systole logs"},
    {"ai custom-jobs describe", "systole why says how a run ended"},
    {"ai custom-jobs list", "systole runs lists the runs"},
    {"ai custom-jobs cancel", "systole stop ends a run"},
    {"billing budgets list", "a budget is an account's; systole runs shows what a run has cost"},
    {"compute regions describe", "systole render --on gke says which quotas the machines need"},
    {"compute instances create-with-container", "gcloud compute instances create is read; image names the container"},
    {"compute instances delete", kUndo},
    {"compute tpus tpu-vm delete", kUndo},
    {"container node-pools delete", kUndo},
    {"container clusters delete", kUndo},
    {"compute instances describe", kShows},
    {"compute instances list", kShows},
    {"compute tpus tpu-vm describe", kShows},
    {"compute tpus tpu-vm list", kShows},
    {"container clusters create-auto", "systole render --on gke writes clusters and node pools"},
    {"container clusters describe", kShows},
    {"container clusters list", kShows},
    {"container node-pools list", kShows},
    {"container clusters get-credentials", "the cluster.sh of systole render --on gke does it"},
    {"services list", kShows},
    {"services enable", "the cluster.sh of systole render --on gke enables what it needs"},
    {"auth", "as whom gcloud speaks is on the machine that types it, and in no workload"},
    {"config set project", "gcloud.project says it of machines, gke.project of a cluster"},
    {"config", "it is how gcloud itself is set up; gcloud.zone and gcloud.project say it of machines"},
    {"storage cp", "what is copied by hand is there before a run, or behind it"},
    {"storage rsync", "what is copied by hand is there before a run, or behind it"},
    {"storage rm", "nothing of a run's is taken away by it: the folder says where its runs lie"},
    {"storage", kBucket},
};

constexpr std::string_view kOwnPool = "render --on gke makes the cluster with one small machine of its own";
constexpr Told kOfCluster[] = {
    {"zone", "gke.location says where the cluster is"},
    {"region", "gke.location says where the cluster is"},
    {"location", "gke.location says where the cluster is"},
    {"project", "gke.project says whose the cluster is"},
    {"network", "gke.network says it of the cluster that render --on gke makes"},
    {"machine-type", kOwnPool},
    {"num-nodes", kOwnPool},
    {"enable-ip-alias", "the cluster that render --on gke makes has it anyway"},
};

constexpr Told kOfBudget[] = {
    {"billing-account", "the command that render --on gke tells finds the account that pays for gke.project"},
    {"display-name", "the command that render --on gke tells calls a budget as the cluster"},
    {"budget-amount", "objective.budget says what a run may cost, and render --on gke tells this command with it"},
    {"threshold-rule", "the command that render --on gke tells has 50%, 90% and 100%"},
};

void tell(const std::vector<ParsedFlag>& seen, std::span<const Told> reasons, std::string_view otherwise,
          Draft& draft) {
  for (const ParsedFlag& flag : seen) {
    const auto known = std::ranges::find(reasons, flag.name, &Told::what);
    draft.left_out(flag.value.from, std::string(known == reasons.end() ? otherwise : known->why));
  }
}

}  // namespace

bool begins(std::string_view command, std::string_view words) {
  return command.starts_with(words) && (command.size() == words.size() || command[words.size()] == ' ');
}

std::string_view why_told(std::string_view command) {
  const auto found = std::ranges::find_if(kCommands, [&](const Told& told) { return begins(command, told.what); });
  return found == std::end(kCommands) ? "" : found->why;
}

void tell_cluster(const std::vector<ParsedFlag>& seen, Draft& draft) {
  draft.left_out("gcloud container clusters create", "systole render --on gke writes clusters and node pools");
  tell(seen, kOfCluster, "the cluster is the one that systole render --on gke makes", draft);
}

void tell_budget(const std::vector<ParsedFlag>& seen, const std::string& /*line*/, Draft& draft) {
  draft.left_out("gcloud billing budgets create", "a budget is an account's; systole runs shows what a run has cost");
  tell(seen, kOfBudget, "systole render --on gke tells the command of a budget of its own", draft);
}

}  // namespace systole
