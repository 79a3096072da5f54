#include "describe/spec/target_needs.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace systole {
namespace {

struct Need {
  JobTargetAbility JobTargetRow::*ability;
  const char* key;  // the key that asks for it; empty: none does
  bool asked = false;
  const char* instead;  // the edit without it
};

std::vector<Need> needs_of(const TargetUse& use) {
  const Workload& w = use.workload;
  const bool retries = w.ranks.retries.value_or(0) > 0;
  return {{&JobTargetRow::jobs, "", w.kind != Workload::Kind::machines, ""},
          {&JobTargetRow::tpus, "", use.tpus, "other accelerators"},
          {&JobTargetRow::spot, "resources.provisioning", asks_terms(w), "take resources.provisioning out"},
          {&JobTargetRow::arrays, "slurm.array", w.slurm.array.has_value(),
           "a run a seed: --set train.seed=N --run NAME-N"},
          {&JobTargetRow::gang, "", use.nodes > 1, "resources.nodes: 1"},
          {&JobTargetRow::restarts, retries ? "ranks.retries" : "resources.provisioning", retries || asks_terms(w),
           retries ? "take ranks.retries out" : "take resources.provisioning out"},
          {&JobTargetRow::budget, "objective.budget", w.objective.budget.has_value(), "take objective.budget out"}};
}

// Why the target lacks an ability.
std::string reason(const JobTargetRow& target, JobTargetAbility JobTargetRow::*ability) {
  if (*(target.*ability).how != '\0') return (target.*ability).how;
  const auto column = std::ranges::find(job_target_columns(), ability, &JobTargetColumn::ability);
  return fmt::format("{} does not: {}", target.title, column->meaning);
}

std::string hint(JobTargetAbility JobTargetRow::*ability, const char* instead) {
  const std::vector<std::string> able = job_starters_that(ability);
  std::string text = able.empty() ? "" : fmt::format("--on {}", fmt::join(able, " or "));
  if (*instead != '\0') text += (text.empty() ? "" : "; or ") + std::string(instead);
  return text;
}

}  // namespace

bool asks_terms(const Workload& w) {
  return w.resources.provisioning && *w.resources.provisioning != Provisioning::on_demand &&
         w.gcloud.create == GcloudSpec::Create::nothing;
}

std::vector<Error> lacking(const JobTargetRow& target, const TargetUse& use) {
  std::vector<Error> errors;
  for (const Need& need : needs_of(use)) {
    if (!need.asked || target.*need.ability) continue;
    const std::string why = reason(target, need.ability);
    Error one = *need.key != '\0'      ? key_error(ErrorKind::unsupported, need.key, "{}", why)
                : use.hardware.empty() ? error(ErrorKind::unsupported, "{}", why)
                                       : error(ErrorKind::unsupported, "{}: {}", use.hardware, why);
    errors.push_back(std::move(one).hinted(hint(need.ability, need.instead)));
  }
  return errors;
}

Error option_lacks(const JobTargetRow& target, JobTargetAbility JobTargetRow::*ability, const char* option,
                   const char* instead) {
  return error(ErrorKind::unsupported, "{}: {}", option, reason(target, ability)).hinted(hint(ability, instead));
}

}  // namespace systole
