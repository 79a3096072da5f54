#include "operate/reference/reference_page.h"

#include <fmt/format.h>

#include "describe/spec/job_target_table.h"
#include "describe/spec/workload.h"

namespace systole {
namespace {

// "yes; by sbatch", "– Slurm has no TPUs here".
std::string words_of(const JobTargetAbility& ability) {
  const std::string how = cell(ability.how);
  return fmt::format("{}{}{}", ability ? "yes" : "–", how.empty() ? "" : ability ? "; " : " ", how);
}

std::string index_page() {
  std::string text = fmt::format(
      "# Targets\n\n{}`--on TARGET` says where a workload is carried to. How each target is tested, and what is "
      "missing:\n"
      "[coverage](../target-coverage.md).\n\n| target | | `render` writes |\n|---|---|---|\n",
      kMadeBy);
  std::string names, line = "|---|---|";
  for (const JobTargetRow& row : job_target_table()) {
    text += fmt::format("| [`{0}`](targets/{0}.md) | {1} | {2} |\n", row.name, cell(row.title), cell(row.about));
    names += fmt::format(" `{}` |", row.name);
    line += "---|";
  }
  text += fmt::format(
      "\n## What each can do\n\nA dash: it cannot. What a workload or a command asks for and its target cannot do is "
      "refused, with this reason.\n\n| ability | |{}\n{}\n",
      names, line);
  for (const JobTargetColumn& column : job_target_columns()) {
    text += fmt::format("| `{}` | {} |", column.name, cell(column.meaning));
    for (const JobTargetRow& row : job_target_table()) text += fmt::format(" {} |", words_of(row.*column.ability));
    text += "\n";
  }
  return text;
}

std::string commands_of(const JobTargetRow& row) {
  std::string text = "| command | |\n|---|---|\n";
  const auto add = [&](std::string_view command, const char* what) {
    text += fmt::format("| `systole {}` | {} |\n", command, what);
  };
  if (row.keys.front() != nullptr)
    add("check job.yaml", "says what would be refused, for each target that its keys name");
  add(fmt::format("render job.yaml --on {}", row.name), "writes the files, and tells the lines to type");
  if (row.submits) {
    add(fmt::format("submit job.yaml --on {}", row.name), "starts a run");
    if (row.chains)
      add(fmt::format("submit job.yaml --on {} --after RUN", row.name), "starts it when that run is done");
    add("runs", "lists the runs");
    add("logs -f RUN", "what it writes, until it ends");
    add("stop RUN", "it saves and ends");
    add("resume RUN", "it goes on");
    add("results RUN", "brings what it came to");
  }
  if (row.exec) add("exec RUN -- COMMAND", "a command on one of its machines");
  if (row.adopts) add(fmt::format("runs --on {}", row.name), "also the runs that were submitted from elsewhere");
  return text;
}

std::string keys_of(const JobTargetRow& row) {
  std::vector<std::string> prefixes = {std::string(row.name) + "."};
  for (const char* key : row.keys)
    if (key != nullptr) prefixes.emplace_back(key);
  const std::string table = keys_table(prefixes);
  std::string text = table.empty() ? "It has no keys of its own: `--on` alone names it.\n" : table;
  if (row.includes != nullptr) text += fmt::format("\nAlso those of [{0}]({0}.md).\n", row.includes);
  return text + "\n[All keys](../keys.md) of a workload.\n";
}

std::string page_of(const JobTargetRow& row) {
  std::string text = fmt::format(
      "# Target {}: {}\n\n{}{}\n\n[All targets](../targets.md) beside each other; how they are tested: "
      "[coverage](../../target-coverage.md).\n\n## An example\n\n```yaml\n{}```\n\n{}\n## What it can do\n\n"
      "| ability | | |\n|---|---|---|\n",
      row.name, row.title, kMadeBy, row.about, row.example, commands_of(row));
  for (const JobTargetColumn& column : job_target_columns())
    text += fmt::format("| `{}` | {} | {} |\n", column.name, cell(column.meaning), words_of(row.*column.ability));
  return text + "\n## Keys\n\n" + keys_of(row);
}

}  // namespace

std::vector<ReferencePage> target_pages() {
  std::vector<ReferencePage> pages = {{"targets.md", index_page()}};
  for (const JobTargetRow& row : job_target_table())
    pages.push_back({fmt::format("targets/{}.md", row.name), page_of(row)});
  return pages;
}

}  // namespace systole
