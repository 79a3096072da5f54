// An object store in a bucket of S3, of AWS or of another server of its interface. What each call is: object_store.h.

#include <algorithm>

#include "ground/store/cloud_stores.h"
#include "ground/store/object_path.h"
#include "ground/store/path.h"
#include "ground/store/s3_list.h"
#include "ground/store/s3_read.h"
#include "ground/store/s3_upload.h"

namespace systole {
namespace {

class S3Objects : public ObjectStore, public PinsVersions {
 public:
  explicit S3Objects(S3Place place) : place_(std::move(place)) {}

  Result<Bytes> size(std::string_view path) override {
    TRY(check_object_path(path));
    return size_in_s3(place_, path);
  }

  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    TRY(check_object_path(path));
    CHECK(offset >= 0, "read of '{}' at {}", path, offset);
    return read_s3_range(place_, path, offset, into);
  }

  Result<ObjectFacts> describe(std::string_view path) override {
    TRY(check_object_path(path));
    return facts_in_s3(place_, path);
  }
  Status get_version(std::string_view path, const Generation& version, std::int64_t offset,
                     std::span<std::byte> into) override {
    TRY(check_object_path(path));
    return read_s3_version(place_, path, version, offset, into);
  }

  Result<Versioned> get_whole(std::string_view path, Bytes limit) override {
    TRY(check_object_path(path));
    return read_s3_whole(place_, path, limit);
  }

  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability) override {
    TRY(check_object_path(path));
    return put_s3(place_, path, bytes, when);
  }

  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override {
    TRY(check_object_path(path));
    return start_s3_upload(place_, std::string(path));
  }

  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override {
    TRY(split_dir_path(prefix));
    return list_s3(place_, prefix, depth);
  }

  Status remove(std::string_view path, const Precondition& when) override {
    TRY(check_object_path(path));
    if (when.kind == Precondition::Kind::absent)
      return error(ErrorKind::invalid, "what is absent cannot be removed: '{}'", path);
    S3Call call{.method = "DELETE", .key = place_.key(path)};
    if (when.kind == Precondition::Kind::always) return removed(TRY(place_.api->send(call)), path);
    // For what is not there the answer may be 204, whatever the condition is.
    const Result<S3Answer> there = head_s3(place_, path);
    if (!there.ok() && there.error().kind == ErrorKind::not_found) return other_version(path);
    if (!there.ok()) return there.error();
    if (Generation{there->header("etag")} != when.generation) return other_version(path);
    add_s3_condition(call.headers, when);
    const S3Answer answer = TRY(place_.api->send(call));
    if (answer.status() == 412) return other_version(path);
    if (answer.status() == 404 && !answer.may_be_second) return other_version(path);
    return removed(answer, path);
  }

  Result<Bytes> abort_uploads(std::string_view prefix) override {
    const std::string_view folder = TRY(folder_of_prefix(prefix));
    return abort_s3_uploads(place_, folder.empty() ? "" : fmt::format("{}/", folder));
  }

  Status settle(std::string_view dir) override {
    TRY(folder_of_prefix(dir));
    return {};
  }

 private:
  Status removed(const S3Answer& answer, std::string_view path) const {
    if (answer.good() || (answer.status() == 404 && answer.code != "NoSuchBucket")) return {};
    return place_.api->refusal(answer, place_.shown(path));
  }
  Error other_version(std::string_view path) const {
    return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster",
                 place_.shown(path));
  }

  const S3Place place_;
};

// What a request to the bucket alone says: it may be absent, or elsewhere. Who may only read objects is told nothing.
Status look_for_bucket(const S3Place& place) {
  const S3Answer answer = TRY(place.api->send({.method = "HEAD"}));
  if (answer.good() || answer.status() == 403) return {};
  const std::string what = fmt::format("s3://{}", place.api->bucket());
  if (answer.status() != 404) return place.api->refusal(answer, what);
  return place.api->no_bucket().hinted(fmt::format("aws s3 mb {}", what));
}

struct Named {
  std::string bucket;
  std::string folder;  // "" or "a/b"
};

Result<Named> read_place(const std::string& place) {
  const std::size_t slash = std::min(place.find('/'), place.size());
  Named named{place.substr(0, slash), place.substr(std::min(place.size(), slash + 1))};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  if (named.bucket.empty() || named.bucket.find_first_not_of(kLetters) != named.bucket.npos)
    return error(ErrorKind::invalid, "'{}' is no name of a bucket", named.bucket).hinted("s3://BUCKET/FOLDER");
  while (named.folder.ends_with('/')) named.folder.pop_back();
  if (!named.folder.empty()) TRY(check_object_path(named.folder));
  return named;
}

}  // namespace

Status check_s3_place(const std::string& place) {
  TRY(read_place(place));
  return {};
}

Result<std::unique_ptr<ObjectStore>> open_s3(const std::string& path, const StoreAccess& access) {
  const Named named = TRY(read_place(path));
  S3Access s3 = access.s3 ? TRY(access.s3()) : S3Access();
  S3Place place{std::make_shared<S3Api>(named.bucket, std::move(s3), access.trust, access.retries, access.clock),
                named.folder.empty() ? "" : fmt::format("{}/", named.folder)};
  TRY(look_for_bucket(place));
  return std::unique_ptr<ObjectStore>(std::make_unique<S3Objects>(std::move(place)));
}

}  // namespace systole
