// An object store on Cloud Storage. What each call is: object_store.h.

#include <algorithm>

#include "ground/net/url.h"
#include "ground/store/bucket_answers.h"
#include "ground/store/cloud_stores.h"
#include "ground/store/gcs_read.h"
#include "ground/store/gcs_write.h"
#include "ground/store/object_facts.h"
#include "ground/store/object_path.h"
#include "ground/store/path.h"

namespace systole {
namespace {

class GcsObjects : public ObjectStore, public PinsVersions {
 public:
  explicit GcsObjects(std::shared_ptr<GcsApi> api) : api_(std::move(api)) {}

  Result<Bytes> size(std::string_view path) override {
    TRY(check_object_path(path));
    return TRY(api_->describe(path)).size;
  }

  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    TRY(check_object_path(path));
    CHECK(offset >= 0, "read of '{}' at {}", path, offset);
    return read_gcs_range(*api_, path, offset, into);
  }

  Result<ObjectFacts> describe(std::string_view path) override {
    TRY(check_object_path(path));
    const GcsObject object = TRY(api_->describe(path));
    return ObjectFacts{.size = object.size, .generation = {object.generation}, .crc32c = object.crc32c};
  }
  Status get_version(std::string_view path, const Generation& version, std::int64_t offset,
                     std::span<std::byte> into) override {
    TRY(check_object_path(path));
    return read_gcs_version(*api_, path, version.text, offset, into);
  }

  Result<Versioned> get_whole(std::string_view path, Bytes limit) override {
    TRY(check_object_path(path));
    return read_gcs_whole(*api_, path, limit);
  }

  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability) override {
    TRY(check_object_path(path));
    return put_in_gcs(*api_, path, bytes, when);
  }

  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override {
    TRY(check_object_path(path));
    return upload_to_gcs(api_, uploads_, std::string(path));
  }

  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override {
    TRY(split_dir_path(prefix));
    ObjectList found = TRY(listed(prefix, depth));
    keep_paths(found);
    std::erase_if(found.prefixes, [](const std::string& path) { return !split_dir_path(path).ok(); });
    return found;
  }

  Status remove(std::string_view path, const Precondition& when) override {
    TRY(check_object_path(path));
    if (when.kind == Precondition::Kind::absent)
      return error(ErrorKind::invalid, "what is absent cannot be removed: '{}'", path);
    const bool conditional = when.kind == Precondition::Kind::generation;
    const HttpSent sent = TRY(api_->erase(api_->name_of(path), conditional ? when.generation.text : ""));
    const int status = sent.reply.status;
    if (status / 100 == 2 || (status == 404 && (!conditional || sent.may_be_second))) return {};
    if (conditional && (status == 404 || status == 412)) {
      return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster",
                   api_->shown(path));
    }
    return api_->refusal(sent.reply, path, "remove");
  }

  // Of dead processes, the temporary objects; a session that they began holds no object and ends by itself.
  Result<Bytes> abort_uploads(std::string_view prefix) override {
    const std::string_view folder = TRY(folder_of_prefix(prefix));
    const std::string under = folder.empty() ? "" : fmt::format("{}/", folder);
    Bytes freed = abort_own(under);
    const ObjectList all = TRY(listed(under, ListDepth::all));
    for (const ObjectEntry& object : all.objects) {
      if (!is_own_name(std::string_view(object.path).substr(object.path.rfind('/') + 1))) continue;
      const HttpSent sent = TRY(api_->erase(api_->name_of(object.path), ""));
      if (sent.reply.status / 100 != 2 && sent.reply.status != 404)
        return api_->refusal(sent.reply, object.path, "remove");
      freed += object.size;
    }
    return freed;
  }

  Status settle(std::string_view dir) override {
    TRY(folder_of_prefix(dir));
    return {};
  }

 private:
  Bytes abort_own(std::string_view under) {
    Bytes freed;
    const std::lock_guard lock(uploads_->mutex);
    std::erase_if(uploads_->begun, [&](const auto& upload) {
      if (!upload.second.path.starts_with(under)) return false;
      freed += upload.second.size;
      return true;
    });
    return freed;
  }

  // With the stores' own names.
  Result<ObjectList> listed(std::string_view prefix, ListDepth depth) {
    ObjectList found;
    std::string page;
    for (int pages = 1;; ++pages) {
      std::string query = "fields=items(name,size),prefixes,nextPageToken&prefix=" + url_encoded(api_->name_of(prefix));
      if (depth == ListDepth::one_level) query += "&delimiter=/";
      if (!page.empty()) query += "&pageToken=" + url_encoded(page);
      const HttpReply reply = std::move(TRY(api_->send({.url = api_->list_url(std::move(query))})).reply);
      if (reply.status != 200) return api_->refusal(reply, "", "list");
      const Result<Node> body = parse_json(reply.body, "answer");
      if (!body.ok() || !body->is_map())
        return error(ErrorKind::io, "'{}': what answers is not Cloud Storage: its list is not JSON",
                     api_->shown(prefix))
            .hinted("check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
      TRY(add(*body, found));
      std::string next = body->text_at("nextPageToken");
      if (next.empty()) break;
      if (!leads_on(page, next, pages))
        return error(ErrorKind::io, "'{}': its list says that more follows, and leads nowhere", api_->shown(prefix))
            .hinted("check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
      page = std::move(next);
    }
    std::ranges::sort(found.objects, {}, &ObjectEntry::path);
    std::ranges::sort(found.prefixes);
    return found;
  }

  Status add(const Node& page, ObjectList& found) {
    const std::size_t own = api_->prefix().size();
    if (const Node* items = page.find("items"); items != nullptr) {
      for (const Node& item : items->items()) {
        const std::string name = item.text_at("name");
        const std::optional<Bytes> size = size_from(item.text_at("size"));
        if (!name.starts_with(api_->prefix()) || !size)
          return error(ErrorKind::io, "'{}': its list has an object without a name or size", api_->shown(""));
        found.objects.push_back({name.substr(own), *size});
      }
    }
    if (const Node* prefixes = page.find("prefixes"); prefixes != nullptr) {
      for (const Node& prefix : prefixes->items())
        if (prefix.text().starts_with(api_->prefix())) found.prefixes.push_back(prefix.text().substr(own));
    }
    return {};
  }

  const std::shared_ptr<GcsApi> api_;
  const std::shared_ptr<GcsUploads> uploads_ = std::make_shared<GcsUploads>();
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_gcs(const std::string& place, const StoreAccess& access) {
  GcsAccess gcs;
  if (access.gcs) gcs = TRY(access.gcs());
  return std::unique_ptr<ObjectStore>(std::make_unique<GcsObjects>(TRY(GcsApi::open(place, std::move(gcs), access))));
}

}  // namespace systole
