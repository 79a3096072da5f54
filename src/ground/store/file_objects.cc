// The posix object store: objects as files (objects_in).

#include <chrono>
#include <functional>
#include <thread>

#include "ground/base/hash.h"
#include "ground/store/object_path.h"
#include "ground/store/object_store.h"
#include "ground/store/path.h"
#include "ground/store/store.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

constexpr std::string_view kTemporary = ".tmp";
constexpr int kPatience = 10'000;  // attempts to take a lock, a millisecond apart
constexpr int kRaces = 16;         // attempts lost to others that make and remove folders or replace objects

std::string inside(std::string_view dir, std::string_view leaf) {
  return dir.empty() ? std::string(leaf) : fmt::format("{}/{}", dir, leaf);
}

std::string temporary_in(std::string_view dir) {
  return inside(dir, fmt::format("{}{}{}", kOwnName, writer_name(), kTemporary));
}

bool is_temporary(std::string_view leaf) { return is_own_name(leaf) && leaf.ends_with(kTemporary); }

Generation generation_of(std::string_view bytes) { return {to_hex(hash128(bytes))}; }

Error changed(std::string_view path) {
  return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster", path);
}

struct Temporary {
  std::string path;
  std::unique_ptr<WritableFile> file;
};

class FileObjects : public ObjectStore {
 public:
  explicit FileObjects(Store& files) : files_(files) {}
  explicit FileObjects(std::unique_ptr<Store> files) : own_(std::move(files)), files_(*own_) {}

  Result<Bytes> size(std::string_view path) override {
    TRY(check_object_path(path));
    Result<Bytes> size = files_.size(path);
    if (!size.ok()) return object_error(std::move(size).error(), path);
    return size;
  }

  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    TRY(check_object_path(path));
    Status read = files_.read(path, offset, into);
    if (!read.ok()) return object_error(std::move(read).error(), path);
    return read;
  }

  // One open file is one version. Its size before and after shows that it was read to its end.
  Result<Versioned> get_whole(std::string_view path, Bytes limit) override {
    for (int race = 0;; ++race) {
      const Bytes before = TRY(size(path));
      if (before > limit) {
        return error(ErrorKind::does_not_fit, "'{}' has {} bytes and the limit for such an object is {}", path,
                     with_commas(before.count()), with_commas(limit.count()));
      }
      std::string bytes(static_cast<std::size_t>(before.count()), '\0');
      const Status read = get(path, 0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
      const bool shrunk = !read.ok() && read.error().kind == ErrorKind::corrupt;
      if (!read.ok() && (!shrunk || race == kRaces)) return read.error();
      const Result<Bytes> after = size(path);
      if (!shrunk && (!after.ok() || *after == before)) {
        Generation generation = generation_of(bytes);
        return Versioned{std::move(bytes), std::move(generation)};
      }
      if (race == kRaces) return error(ErrorKind::io, "the object '{}' is replaced all the time", path);
    }
  }

  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability durability) override {
    TRY(check_object_path(path));
    Status done = put_once(path, bytes, when, durability);
    for (int race = 0; !done.ok() && done.error().kind == ErrorKind::not_found && race < kRaces; ++race)
      done = put_once(path, bytes, when, durability);  // another process's abort_uploads removed the temporary file
    TRY(std::move(done));
    return generation_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  Status put_once(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                  Durability durability) {
    const Temporary temporary = TRY(create_temporary(parent_of(path)));
    Status done = bytes.empty() ? Status() : temporary.file->append(bytes);
    if (done.ok() && durability != Durability::none) done = temporary.file->sync();
    if (done.ok()) done = temporary.file->close();
    if (done.ok()) done = place(temporary.path, path, when, durability);
    if (!done.ok()) (void)files_.remove(temporary.path);  // best effort: the first error is the one to report
    return done;
  }

  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override;

  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override {
    TRY(split_dir_path(prefix));
    const std::size_t slash = prefix.rfind('/');
    ObjectList listing;
    TRY(list_into(listing, parent_of(prefix), slash == prefix.npos ? prefix : prefix.substr(slash + 1), depth));
    return listing;
  }

  Status remove(std::string_view path, const Precondition& when) override {
    TRY(check_object_path(path));
    if (when.kind == Precondition::Kind::absent)
      return error(ErrorKind::invalid, "what is absent cannot be removed: '{}'", path);
    if (when.kind == Precondition::Kind::always) {
      TRY(files_.remove(path));
    } else {
      TRY(if_unchanged(path, when.generation, [&] { return files_.remove(path); }));
    }
    return prune(parent_of(path));
  }

  Result<Bytes> abort_uploads(std::string_view prefix) override {
    Bytes freed;
    TRY(sweep(TRY(folder_of_prefix(prefix)), freed));
    return freed;
  }

  // The folder's own name is an entry of its parent.
  Status settle(std::string_view dir) override {
    for (dir = TRY(folder_of_prefix(dir));; dir = parent_of(dir)) {
      Status synced = files_.sync_dir(dir);
      if (!synced.ok() && synced.error().kind != ErrorKind::not_found) return synced;
      if (dir.empty()) return {};
    }
  }

  Status make_folder(std::string_view dir) override {
    Status made = files_.make_dirs(dir);
    if (made.ok() || made.error().kind != ErrorKind::exists) return made;
    return error(ErrorKind::invalid, "no object can lie in '{}': an object has that path, or one above it", dir);
  }

  Result<Bytes> free_space() override { return files_.free_space(); }

  Result<Temporary> create_temporary(std::string_view dir) {
    for (int race = 0;; ++race) {
      std::string path = temporary_in(dir);
      Result<std::unique_ptr<WritableFile>> file = files_.create(path);
      if (file.ok()) return Temporary{std::move(path), *std::move(file)};
      if (file.error().kind != ErrorKind::not_found || dir.empty() || race == kRaces) return std::move(file).error();
      TRY(make_folder(dir));
    }
  }

  // Gives the object its name in one atomic step and removes the temporary name.
  Status place(const std::string& temporary, std::string_view path, const Precondition& when, Durability durability) {
    const std::string_view dir = parent_of(path);
    Status placed = place_in_folder(temporary, path, when);
    if (!placed.ok() && placed.error().kind == ErrorKind::not_found && !dir.empty() && dir != parent_of(temporary)) {
      TRY(make_folder(dir));  // the folder of complete_as's path
      placed = place_in_folder(temporary, path, when);
    }
    TRY(std::move(placed));
    return durability == Durability::on_return ? settle(dir) : Status();
  }

  Store& files() { return files_; }

 private:
  // A folder is not an object.
  Error object_error(Error why, std::string_view path) {
    if (why.kind == ErrorKind::io && files_.list(path).ok())
      return error(ErrorKind::not_found, "there is no object '{}', but objects below it", path);
    return why;
  }

  Status place_in_folder(const std::string& temporary, std::string_view path, const Precondition& when) {
    switch (when.kind) {
      case Precondition::Kind::always: return files_.rename(temporary, path);
      case Precondition::Kind::absent: {
        const auto there = [&] { return error(ErrorKind::exists, "the object '{}' is there already", path); };
        Status linked = files_.link(temporary, path);
        if (!linked.ok() && linked.error().kind == ErrorKind::exists) return there();
        if (!linked.ok() && linked.error().kind == ErrorKind::unsupported) {  // a file system without links
          const std::unique_ptr<FileLock> lock = TRY(wait_for_lock(parent_of(path)));
          return TRY(files_.exists(path)) ? Status(there()) : files_.rename(temporary, path);
        }
        TRY(std::move(linked));
        return files_.remove(temporary);
      }
      case Precondition::Kind::generation:
        return if_unchanged(path, when.generation, [&] { return files_.rename(temporary, path); });
    }
    return {};
  }

  // Compares and acts under the lock of the object's folder.
  Status if_unchanged(std::string_view path, const Generation& seen, const std::function<Status()>& act) {
    const Result<std::unique_ptr<FileLock>> lock = wait_for_lock(parent_of(path));
    if (!lock.ok() && lock.error().kind == ErrorKind::not_found) return changed(path);
    if (!lock.ok()) return lock.error();
    const Result<Versioned> now = get_whole(path, Bytes(std::int64_t{1} << 40));
    if (!now.ok() && now.error().kind != ErrorKind::not_found) return now.error();
    return now.ok() && now->generation == seen ? act() : Status(changed(path));
  }

  // A holder only reads one object and renames another, so the wait is short unless the holder was stopped right there.
  Result<std::unique_ptr<FileLock>> wait_for_lock(std::string_view dir) {
    for (int tries = 0;; ++tries) {
      Result<std::unique_ptr<FileLock>> lock = files_.try_lock(dir);
      if (lock.ok() || lock.error().kind != ErrorKind::busy) return lock;
      if (tries == kPatience) {
        return error(ErrorKind::io, "another process holds the lock of the folder '{}' for more than {} s", dir,
                     kPatience / 1000)
            .hinted("it is stopped: let it go on (kill -CONT) or end it; fuser names it for the file .systole-lock");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // The names in a folder; folders end in '/'. Empty if there is no such folder.
  Result<std::vector<std::string>> names_in(std::string_view dir) {
    Result<std::vector<std::string>> names = files_.list(dir);
    if (!names.ok() && names.error().kind == ErrorKind::not_found) return std::vector<std::string>();
    return names;
  }

  Status list_into(ObjectList& listing, std::string_view dir, std::string_view begins, ListDepth depth) {
    for (const std::string& name : TRY(names_in(dir))) {
      if (!name.starts_with(begins) || is_own_name(name)) continue;
      std::string path = inside(dir, name);
      if (name.ends_with('/')) {
        const std::string_view folder = std::string_view(path).substr(0, path.size() - 1);
        if (depth == ListDepth::all) {
          TRY(list_into(listing, folder, "", depth));
        } else if (TRY(holds_an_object(folder))) {
          listing.prefixes.push_back(std::move(path));
        }
        continue;
      }
      const Result<Bytes> size = files_.size(path);
      if (size.ok()) {
        listing.objects.push_back({std::move(path), *size});
      } else if (size.error().kind != ErrorKind::not_found && size.error().kind != ErrorKind::invalid) {
        return size.error();  // not_found: gone meanwhile; invalid: a device or a pipe
      }
    }
    return {};
  }

  Result<bool> holds_an_object(std::string_view dir) {
    for (const std::string& name : TRY(names_in(dir))) {
      if (is_own_name(name)) continue;
      if (!name.ends_with('/')) return true;
      if (TRY(holds_an_object(inside(dir, std::string_view(name).substr(0, name.size() - 1))))) return true;
    }
    return false;
  }

  // Removes the folder and then its parents as long as they are empty. A folder that is not empty or cannot be removed
  // stays.
  Status prune(std::string_view dir) {
    for (; !dir.empty(); dir = parent_of(dir)) {
      Status removed = files_.remove_dir(dir);
      if (!removed.ok()) return removed.error().kind == ErrorKind::exists ? Status() : removed;
    }
    return {};
  }

  // Removes temporary files and the empty folders below. Returns true if the folder is now empty.
  Result<bool> sweep(std::string_view dir, Bytes& freed) {
    bool empty = true;
    for (const std::string& name : TRY(names_in(dir))) {
      const std::string path = inside(dir, name);
      if (name.ends_with('/')) {
        const std::string_view folder = std::string_view(path).substr(0, path.size() - 1);
        const bool left = !TRY(sweep(folder, freed));
        if (!left) {
          Status removed = files_.remove_dir(folder);
          if (!removed.ok() && removed.error().kind != ErrorKind::exists) return std::move(removed).error();
        }
        empty = empty && !left;
      } else if (is_temporary(name)) {
        const Result<Bytes> size = files_.size(path);
        TRY(files_.remove(path));
        if (size.ok()) freed += *size;
      } else {
        empty = false;
      }
    }
    return empty;
  }

  std::unique_ptr<Store> own_;
  Store& files_;
};

class FileUpload : public Upload {
 public:
  FileUpload(FileObjects& store, std::string path, Temporary temporary)
      : store_(store), path_(std::move(path)), temporary_(std::move(temporary)) {}
  FileUpload(const FileUpload&) = delete;
  FileUpload& operator=(const FileUpload&) = delete;
  ~FileUpload() override {
    try {
      (void)abort();
    } catch (...) {}  // a test's store that simulates a crash
  }

  Status append(std::span<const std::byte> bytes) override {
    CHECK(!over_ && temporary_.file, "append to the upload of '{}' after its end", path_);
    return temporary_.file->append(bytes);
  }

  Status complete(const Precondition& when, Durability durability) override {
    return complete_as(path_, when, durability);
  }

  Status complete_as(std::string_view path, const Precondition& when, Durability durability) override {
    CHECK(!over_, "the upload of '{}' is completed after its end", path_);
    Status done = check_object_path(path);
    if (done.ok()) done = close(when, durability);
    if (done.ok()) done = store_.place(temporary_.path, path, when, durability);
    if (done.ok()) {
      over_ = true;
      return done;
    }
    const ErrorKind kind = done.error().kind;
    if (kind != ErrorKind::exists && kind != ErrorKind::busy) (void)abort();
    return done;
  }

  Status abort() override {
    if (std::exchange(over_, true)) return {};
    temporary_.file.reset();
    return store_.files().remove(temporary_.path);
  }

 private:
  // Closes once: a second complete, after a failed condition, finds the file closed.
  Status close(const Precondition& when, Durability durability) {
    if (!temporary_.file) return {};
    const std::unique_ptr<WritableFile> file = std::move(temporary_.file);
    if (durability != Durability::none || when.kind != Precondition::Kind::always) TRY(file->sync());
    return file->close();
  }

  FileObjects& store_;
  std::string path_;
  Temporary temporary_;
  bool over_ = false;
};

Result<std::unique_ptr<Upload>> FileObjects::start_upload(std::string_view path) {
  TRY(check_object_path(path));
  Temporary temporary = TRY(create_temporary(parent_of(path)));
  return std::unique_ptr<Upload>(std::make_unique<FileUpload>(*this, std::string(path), std::move(temporary)));
}

}  // namespace

std::unique_ptr<ObjectStore> objects_in(Store& files) { return std::make_unique<FileObjects>(files); }
std::unique_ptr<ObjectStore> objects_in(std::unique_ptr<Store> files) {
  return std::make_unique<FileObjects>(std::move(files));
}

}  // namespace systole
