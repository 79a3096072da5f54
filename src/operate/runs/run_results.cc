#include "operate/runs/run_results.h"

#include <algorithm>
#include <filesystem>

#include "execute/checkpoint/restore.h"
#include "ground/base/files.h"
#include "ground/base/os_error.h"
#include "operate/run/run_places.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

// All or nothing: a failed copy is removed. An existing empty folder may be one that cannot be replaced.
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

}  // namespace

std::vector<std::string> result_folders(const ClusterRun& run) {
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

std::string verified_checkpoint(const std::string& folder) {
  if (!path_exists(folder + "/workload.yaml")) return "";
  const Result<CheckpointPlace> found = find_checkpoints(folder);
  if (!found.ok()) return "";  // they are on disks of its machines
  const CheckpointPlace& place = *found;
  if (checkpoint::list_steps(place.folder).value().empty()) return "";
  const checkpoint::Restored newest = checkpoint::open_newest(place.folder).value();
  return fmt::format("checkpoint of step {}, verified", newest.checkpoint.manifest().step);
}

std::string bring_results(const ClusterRun& run, const std::string& folder, const std::string& out,
                          const std::string& runs) {
  if (out.empty() && run.cluster->shares_folders()) {
    const std::string here = (fs::path(run.record.from) / folder).lexically_normal().string();
    if (is_folder(here)) return here;
    fail(error(ErrorKind::not_found, "there is no folder '{}' on this machine", here)
             .hinted("run this where the cluster's folders are seen"));
  }
  std::string place = out.empty() ? fmt::format("{}/{}", runs, run.record.run) : out;
  if (run.record.array) place += "/" + fs::path(folder).filename().string();
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  if (is_file(place) || !paths_in(place).empty())
    fail(error(ErrorKind::exists, "the folder '{}' is not empty", place).hinted("another one: --out"));
  bring_whole(run, folder, place);
  return place;
}

}  // namespace systole
