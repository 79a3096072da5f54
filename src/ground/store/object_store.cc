#include "ground/store/object_store.h"

#include <algorithm>
#include <iterator>

#include "ground/store/cloud_stores.h"
#include "ground/store/store.h"

namespace systole {

Result<bool> has_object(ObjectStore& store, std::string_view path) {
  const Result<Bytes> size = store.size(path);
  if (size.ok()) return true;
  if (size.error().kind == ErrorKind::not_found) return false;
  return size.error();
}

Result<std::string> get_text(ObjectStore& store, std::string_view path, Bytes limit) {
  return std::move(TRY(store.get_whole(path, limit)).bytes);
}

namespace {

struct Scheme {
  std::string_view name;
  std::string_view form;  // as a user writes it; empty: its stores end with the process
  Result<std::unique_ptr<ObjectStore>> (*open)(const std::string& path, const StoreAccess& access);
  Status (*check)(const std::string& path) = nullptr;  // the text after the scheme, when it is read
};

Result<std::unique_ptr<ObjectStore>> open_files(const std::string& path, const StoreAccess&) {
  return objects_in(TRY(open_posix_store(path)));
}

Result<std::unique_ptr<ObjectStore>> open_memory(const std::string&, const StoreAccess&) {
  return make_memory_objects();
}

constexpr Scheme kSchemes[] = {
    {StoreUri::kFile, "a folder of this machine, as /path or file:///path", open_files},
    {StoreUri::kMemory, "", open_memory},
    {"gs", "a bucket of Cloud Storage, as gs://BUCKET/FOLDER", open_gcs, check_gcs_place},
    {"s3", "a bucket of S3, as s3://BUCKET/FOLDER", open_s3, check_s3_place},
};

const Scheme* find_scheme(std::string_view name) {
  const auto* found = std::ranges::find(kSchemes, name, &Scheme::name);
  return found == std::end(kSchemes) ? nullptr : found;
}

// "gs" of "gs://bucket/a"; empty: the text is a path.
std::string_view scheme_of(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == text.npos) return {};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
  return text.substr(0, end).find_first_not_of(kLetters) == text.npos ? text.substr(0, end) : std::string_view();
}

}  // namespace

std::string store_forms() {
  std::string forms;
  for (const Scheme& scheme : kSchemes)
    if (!scheme.form.empty()) forms += fmt::format("{}{}", forms.empty() ? "" : "; ", scheme.form);
  return forms;
}

Result<StoreUri> read_store_uri(std::string_view text) {
  if (text == "memory:") return StoreUri{std::string(StoreUri::kMemory), ""};
  const std::string_view scheme = scheme_of(text);
  if (scheme.empty() && !text.starts_with("file:/")) return StoreUri::local(std::string(text));
  if (scheme.empty() || (scheme == StoreUri::kFile && !text.starts_with("file:///")))
    return error(ErrorKind::invalid, "'{}' names no folder of this machine", text).hinted("file:///path has three '/'");
  const Scheme* found = find_scheme(scheme);
  if (found == nullptr)
    return error(ErrorKind::unsupported, "there is no store for {}://", scheme).hinted(store_forms());
  StoreUri uri{std::string(scheme), std::string(text.substr(scheme.size() + 3))};
  if (found->check != nullptr) TRY(found->check(uri.path));
  return uri;
}

Result<std::unique_ptr<ObjectStore>> open_store(const StoreUri& uri) { return open_store(uri, StoreAccess{}); }

Result<std::unique_ptr<ObjectStore>> open_store(const StoreUri& uri, const StoreAccess& access) {
  const Scheme* scheme = find_scheme(uri.scheme);
  CHECK(scheme != nullptr, "a store of the unknown scheme {}", uri.scheme);
  return scheme->open(uri.path, access);
}

}  // namespace systole
