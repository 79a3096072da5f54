#pragma once
// Requests of Cloud Storage's JSON API about the objects under one prefix of one bucket: their addresses, the token and
// what else each shows, retries, and errors for people. What the calls of a store do with them: gcs_objects.cc,
// gcs_write.cc, gcs_read.cc.
//   https://cloud.google.com/storage/docs/json_api/v1 (2026-11), …/docs/performing-resumable-uploads

#include <optional>
#include <span>

#include "ground/base/document.h"
#include "ground/net/hedged_reads.h"
#include "ground/net/http_pool.h"
#include "ground/store/store_access.h"

namespace systole {

// A request; send() adds the token.
struct GcsAsk {
  std::string method = "GET", url;
  HttpHeaders headers = {};
  std::string body = {};
  std::string_view borrowed_body = {};
  // Called with the request before each try, to begin anew or go on; an error ends it.
  std::function<Status(HttpRequest&)> begin = {};
  bool is_own_address = false;  // an upload's session: its address is the permission
  bool once = false;            // no retries: to clean up on the way out
};

// An object as the server describes it.
struct GcsObject {
  std::string name;  // in the bucket
  Bytes size{};
  std::string generation;
  std::optional<std::uint32_t> crc32c;
  std::string mark;  // metadata "systole-write": the write that made it; may be empty
};
// Errors: io, "this is no answer of Cloud Storage".
Result<GcsObject> read_gcs_object(const HttpReply& reply, std::string_view asked);

class GcsApi {
 public:
  // "bucket" or "bucket/prefix". Errors: invalid.
  static Result<std::shared_ptr<GcsApi>> open(const std::string& place, GcsAccess gcs, const StoreAccess& access);

  const std::string& prefix() const { return prefix_; }                                     // "" or "a/b/"
  std::string name_of(std::string_view path) const { return prefix_ + std::string(path); }  // in the bucket
  std::string shown(std::string_view path) const;                                           // "gs://bucket/a/b/path"
  std::int64_t part() const { return gcs_.part; }
  int parallel() const { return gcs_.parallel; }
  const std::string& kms_key() const { return gcs_.kms_key; }

  // Addresses, with "userProject" where one pays; `query` is "a=b&c=d", encoded, or empty.
  std::string object_url(std::string_view name, std::string query = {}) const;
  std::string list_url(std::string query) const;
  std::string upload_url(std::string query) const;
  std::string rewrite_url(std::string_view from, std::string_view to, std::string query) const;

  // Errors: io (no answer, or none in time). Statuses are not errors.
  Result<HttpSent> send(const GcsAsk& ask);
  // The error that a status stands for. `path` is of the object it is about; empty: the bucket.
  Error refusal(const HttpReply& reply, std::string_view path, std::string_view doing) const;

  // Errors: not_found and others of refusal, io.
  Result<GcsObject> describe(std::string_view path);
  HedgedReads& reads() { return *reads_; }
  // Deletes by name; fine if absent. `generation` empty: whichever is there.
  Result<HttpSent> erase(std::string_view name, const std::string& generation, bool once = false);

 private:
  GcsApi(std::string bucket, std::string prefix, GcsAccess gcs, const StoreAccess& access);
  std::string paid(std::string url, std::string query) const;

  const std::string bucket_, prefix_;
  const GcsAccess gcs_;
  const RetryPolicy retries_;
  const std::shared_ptr<Clock> clock_;
  HttpPool pool_;
  const std::unique_ptr<HedgedReads> reads_ =
      std::make_unique<HedgedReads>();  // ends first: its threads use the others
};

// Of "x-goog-hash: crc32c=…", big-endian in base64; nothing if there is none.
std::optional<std::uint32_t> crc32c_in(const HttpReply& reply);

}  // namespace systole
