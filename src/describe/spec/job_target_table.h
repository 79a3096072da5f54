#pragma once
// The table of job targets: the values of `--on TARGET`, the keys that imply each, and what each can do. `plan`,
// `render`, `submit`, `runs`, `exec`, `check` and their help decide by it, never by a target's name; target_needs.h has
// what a workload asks of it. docs/reference/targets shows all of it. The code of a target is in operate/targets/NAME;
// a test compares its list with this table.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace systole {

struct JobTargetAbility {
  bool can = false;
  const char* how = "";  // the means or the condition; if it cannot, the reason. Empty: self-explanatory
  explicit operator bool() const { return can; }
};

struct JobTargetRow {
  const char* name;     // the value of --on
  const char* title;    // display name
  const char* about;    // what `render` writes for it, a sentence
  const char* example;  // a workload for it
  // Keys, or beginnings of keys, by which a workload names it; empty: by --on only.
  std::array<const char*, 3> keys;
  const char* includes;  // another target, whose rules it applies too; null: none
  // A row leaves out what needs no explanation why not.
  // Accepts:
  JobTargetAbility jobs{};      // a workload that trains, or a user's own program
  JobTargetAbility serves{};    // workload: serve
  JobTargetAbility batches{};   // a job of `systole batch`, at the times of its schedule
  JobTargetAbility machines{};  // workload: machines, on which nothing runs
  JobTargetAbility images{};    // a base for building an image: --base, --accelerator
  JobTargetAbility tpus{};      // resources.accelerators that are TPUs
  JobTargetAbility spot{};      // resources.provisioning: spot and other terms
  JobTargetAbility arrays{};    // several runs of one workload at once
  // Provides:
  JobTargetAbility provisions{};  // creates the machines
  JobTargetAbility submits{};     // `submit` starts a run; `runs`, `logs`, `stop`, `resume`, `results` follow it
  JobTargetAbility gang{};        // starts all nodes of a run together, or none
  JobTargetAbility restarts{};    // restarts a run after a preemption or the loss of a node
  JobTargetAbility budget{};      // saves and ends a run when it has cost objective.budget
  JobTargetAbility chains{};      // starts a run after others finish: submit --after
  JobTargetAbility exec{};        // `exec` and `ssh` reach a run's machines
  JobTargetAbility contexts{};    // submits to one of several clusters: submit --context
  JobTargetAbility adopts{};      // finds runs submitted from elsewhere: runs --on
};

// In display order.
std::span<const JobTargetRow> job_target_table();
// Null if there is no target of that name.
const JobTargetRow* find_job_target_row(std::string_view name);

struct JobTargetColumn {
  const char* name;
  JobTargetAbility JobTargetRow::*ability;
  const char* meaning;
};
// All abilities, as columns of the reference page.
std::span<const JobTargetColumn> job_target_columns();

// Names in table order: of all targets, and of those with an ability.
std::vector<std::string> job_target_names();
std::vector<std::string> job_targets_that(JobTargetAbility JobTargetRow::*ability);
// Of those that start jobs, with an ability.
std::vector<std::string> job_starters_that(JobTargetAbility JobTargetRow::*ability);

}  // namespace systole
