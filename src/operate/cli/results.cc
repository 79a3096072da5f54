// `systole results RUN`: what a run on a cluster came to, brought to a folder and held to its digests.

#include <csignal>
#include <filesystem>

#include "execute/checkpoint/restore.h"
#include "ground/base/files.h"
#include "ground/base/os_error.h"
#include "operate/cli/cluster_runs.h"
#include "operate/cli/run_places.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

struct ResultsOptions {
  std::string run, out;
};

// As the run names them; a task of an array, which only targets that share folders have, has one of its own.
std::vector<std::string> folders_of(const ClusterRun& run) {
  if (!run.record.array) return {run.record.folder};
  std::vector<std::string> folders;
  const fs::path all = run.folder();
  const std::string head = all.filename().string() + ".";
  for (const fs::path& path : paths_in(all.parent_path()))
    if (is_folder(path) && path.filename().string().starts_with(head))
      folders.push_back((fs::path(run.record.folder).parent_path() / path.filename()).string());
  std::ranges::sort(folders);
  return folders;
}

// What the newest checkpoint in there is, after all of its bytes were held to their digests; "" without any.
std::string verified(const std::string& folder) {
  if (!path_exists(folder + "/workload.yaml")) return "";
  const Result<CheckpointPlace> found = find_checkpoints(folder);
  if (!found.ok()) return "";  // they lie on a disk of its machines
  const CheckpointPlace& place = *found;
  if (!place.store->exists(place.folder.dir).value()) return "";
  if (checkpoint::list_steps(place.folder).value().empty()) return "";
  const checkpoint::Restored newest = checkpoint::open_newest(place.folder).value();
  return fmt::format("checkpoint of step {}, verified", newest.checkpoint.manifest().step);
}

// All of it, or nothing: what came of a copy that failed is taken away. A folder that is there, and is empty, may be
// one that cannot be replaced.
void bring_whole(const ClusterRun& run, const std::string& folder, const std::string& place) {
  const bool fresh = !path_exists(place);
  const std::string part = fresh ? place + ".part" : place;
  if (fresh) make_folders(fs::path(part).parent_path()).value();
  std::error_code failed;
  const bool made = fresh && fs::create_directory(part, failed);
  if (failed) fail(os_error(failed.value(), "make the folder", part));
  if (fresh && !made)
    fail(error(ErrorKind::exists, "there is a '{}': another copy is under way, or was ended half-way", part)
             .hinted(fmt::format("take it away when no other runs: rm -r {}", part)));
  const Status came = run.cluster->bring(run.record, folder, part);
  if (came.ok() && fresh) fs::rename(part, place, failed);
  if (came.ok() && failed) fail(os_error(failed.value(), "rename to", place));
  if (came.ok()) return;
  std::error_code ignored;
  for (const fs::path& path : paths_in(part)) fs::remove_all(path, ignored);
  if (fresh) fs::remove(part, ignored);
  fail(came.error());
}

// Where it is on this machine, after it was copied there when that is asked or needed.
std::string brought(const ClusterRun& run, const std::string& folder, const std::string& out) {
  if (out.empty() && run.cluster->shares_folders()) {
    const std::string here = (fs::path(run.record.from) / folder).lexically_normal().string();
    if (is_folder(here)) return here;
    fail(error(ErrorKind::not_found, "there is no folder '{}' on this machine", here)
             .hinted("run this where the cluster's folders are seen"));
  }
  std::string place = out.empty() ? fmt::format("{}/{}", kRunsFolder, run.record.run) : out;
  if (run.record.array) place += "/" + fs::path(folder).filename().string();
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  if (is_file(place) || !paths_in(place).empty())
    fail(error(ErrorKind::exists, "the folder '{}' is not empty", place).hinted("another one: --out"));
  bring_whole(run, folder, place);
  return place;
}

ExitCode results(const ResultsOptions& options, Context& context) {
  std::signal(SIGPIPE, SIG_IGN);  // whoever unpacks may end early, and that is said
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, context);
  const std::vector<Seen> jobs = run->look();
  const Seen seen = overall(jobs);
  if (!is_over(seen.phase) && seen.phase != Phase::unknown)
    fail(error(ErrorKind::busy, "the run '{}' is {}", options.run, told(run->record, seen))
             .hinted(fmt::format("wait for it (systole logs -f {0}), or end it: systole stop {0}", options.run)));
  Node list = Node::sequence();
  for (const std::string& folder : folders_of(*run)) {
    const std::string place = brought(*run, folder, options.out);
    const std::string what = verified(place);
    context.out.data(fmt::format("{}{}", place, what.empty() ? "" : ": " + what));
    list.push(Node::map({{"folder", place}, {"checkpoint", what}}));
  }
  context.out.message(fmt::format("{}: {}", options.run, told(run->record, seen)));
  Node node = run_node(run->record, jobs, context.clock);
  context.out.json(node.set("results", list));
  return seen.phase == Phase::done ? ExitCode::done : ExitCode::no;
}

}  // namespace

void add_results(Subcommand app, Context& context) {
  auto options = std::make_shared<ResultsOptions>();
  Subcommand command = add_command(app, "results", "bring what a run on a cluster came to", options, context, results);
  command.add_option("run", options->run, "the run's name").required();
  command.add_option(
      "--out", options->out,
      "copy it to this folder; without: says where it is, or copies it to runs/RUN where only its machines have it");
}

}  // namespace systole::cli
