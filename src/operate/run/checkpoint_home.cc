#include "operate/run/checkpoint_home.h"

#include <filesystem>

#include "ground/base/files.h"
#include "operate/run/store_access.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "checkpoint.folder";
constexpr std::string_view kOwner = "owner";  // the object that says of which run a home without a lock is

Result<StoreUri> uri_of(const CheckpointSpec& spec) {
  Result<StoreUri> uri = read_store_uri(spec.folder);
  if (!uri.ok()) {
    Error why = std::move(uri).error();
    return key_error(why.kind, kKey, "{}", why.message).hinted(std::move(why.hint));
  }
  if (uri->is_lasting()) return uri;
  return key_error(ErrorKind::invalid, kKey,
                   "'{}' ends with the process, and no other could go on from checkpoints there", spec.folder)
      .hinted(store_forms());
}

// A local folder as a path in the run's, or an absolute or "../" one outside it.
std::string local_folder(const StoreUri& uri) {
  std::string folder = fs::path(uri.path).lexically_normal().string();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder == "." ? "" : folder;
}

bool is_outside(const std::string& folder) {
  return folder.starts_with('/') || folder == ".." || folder.starts_with("../");
}

Result<CheckpointHome> opened(const StoreUri& uri, const std::string& root, std::string dir) {
  CheckpointHome home{.path = dir.empty() ? root : root + "/" + dir, .root = root};
  if (uri.is_local()) home.local = root;
  home.folder = {TRY(open_store(uri, store_access())), std::move(dir)};
  return home;
}

}  // namespace

Result<CheckpointHome> checkpoint_home(const std::string& run, const CheckpointSpec& spec, Absent absent) {
  const StoreUri uri = TRY(uri_of(spec));
  if (uri.is_local() && !is_outside(local_folder(uri))) return opened(StoreUri::local(run), run, local_folder(uri));
  std::string root = uri.shown();
  if (uri.is_local()) {
    root = (fs::path(run) / local_folder(uri)).lexically_normal().string();
    if (absent == Absent::is_made) TRY(make_folders(root));
    if (!is_folder(root)) {
      return key_error(ErrorKind::not_found, kKey, "there is no folder '{}'", root)
          .hinted("mount its disk again, or copy the folder back");
    }
  }
  CheckpointHome home = TRY(opened(uri.is_local() ? StoreUri::local(root) : uri, root, ""));
  home.outside = true;
  return home;
}

Result<CheckpointHome> open_home(const std::string& run, const CheckpointSpec& spec, Absent absent) {
  CheckpointHome home = TRY(checkpoint_home(run, spec, absent));
  const bool saved = !TRY(checkpoint::list_steps(home.folder)).empty();
  home.folder.keys = TRY(checkpoint::read_keys(
      key_refs_of(spec), saved ? checkpoint::KeysFor::what_is_there : checkpoint::KeysFor::a_new_run));
  return home;
}

Result<CheckpointHome> home_at(const StoreUri& uri) {
  CheckpointHome home = TRY(opened(uri, uri.shown(), ""));
  home.outside = true;
  return home;
}

checkpoint::KeyRefs key_refs_of(const CheckpointSpec& spec) {
  return {spec.encryption_key, spec.signing_key, spec.trusted_key};
}

Status check_checkpoint_folder(const CheckpointSpec& spec, const WorkloadSource& source) {
  Result<StoreUri> uri = uri_of(spec);
  if (uri.ok()) return {};
  return source.placed(std::move(uri).error());
}

Result<std::unique_ptr<FileLock>> lock_home(const CheckpointHome& home) {
  if (!home.local.empty()) return lock_folder(home.local);
  return error(ErrorKind::unsupported, "'{}' has no lock: a run may write there meanwhile", home.path)
      .hinted("copy the checkpoints to a folder of this machine");
}

Status own_home(const CheckpointHome& home, const std::string& run) {
  const std::string owner = TRY(absolute_path(run));
  const std::string object = home.folder.at(kOwner);
  const Result<Generation> put = home.folder.store->put(object, owner, Precondition::absent());
  if (put.ok()) return {};
  if (put.error().kind != ErrorKind::exists && put.error().kind != ErrorKind::io) return put.error();
  const std::string held = TRY(get_text(*home.folder.store, object));  // also what a put with a lost answer has written
  if (held == owner) return {};
  return key_error(ErrorKind::busy, kKey, "'{}' is of the run '{}'", home.path, held)
      .hinted(fmt::format("another folder; or, if that run is gone or was moved, remove '{}/{}'", home.path, kOwner));
}

}  // namespace systole
