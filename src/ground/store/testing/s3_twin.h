#pragma once
// A server of S3 in this process: one bucket in memory, with what the store uses of the interface, and faults at chosen
// requests. It checks the signature, the payload's hash and the CRC-32C of each request, which other stand-ins do not.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ground/net/testing/http_stub.h"
#include "ground/store/store_access.h"

namespace systole {

struct S3Fault {
  enum class Kind {
    refused,      // the connection is closed before anything is done
    answer_lost,  // done, and the connection closed without an answer
    truncated,    // done, and half of the answer sent
    twice,        // done twice, as by a proxy that sends again; the second answer
    slow_down,    // 503, nothing done
    throttled,    // 429, nothing done
    failed,       // done, and answered with 500
    late_error,   // nothing done, and 200 with an error in the body
    conflict,     // 409, nothing done
    damaged,      // done; a bit of the answer's body is flipped
    stale_list,   // a list is that of the beginning, empty
  };
  Kind kind;
  std::int64_t request;  // the n-th, from 1
  bool onwards = false;  // every later one too
};

class S3Twin {
 public:
  static constexpr const char* kBucket = "twin";
  S3Twin();
  ~S3Twin();

  static std::string id();  // of its keys
  static std::string secret();

  std::int64_t part = 5;  // bytes of a part, for access()

  // With keys of the twin and no waits between tries.
  StoreAccess access() const;
  std::unique_ptr<ObjectStore> open(const std::string& folder = "") const;
  std::string url() const;

  void inject(S3Fault fault);
  void clear_faults();            // and counts from 1 again
  std::int64_t requests() const;  // since then
  std::vector<std::string> log() const;
  void expire(const std::string& session);  // keys with it are refused

  void put(const std::string& key, std::string bytes);  // without a request
  std::vector<std::string> keys() const;                // of the objects
  std::string bytes_of(const std::string& key) const;
  std::int64_t open_uploads() const;
  std::string header_of(const std::string& key, const std::string& name) const;  // that it was written with
  bool holds_checksums = true;  // false: of objects of parts it states none
  std::string region = "us-east-1";
  std::size_t page = 2;  // entries of a list

 private:
  struct Reply;
  struct Object {
    std::string bytes, etag;
    HttpHeaders headers;
    bool has_crc = true;
  };
  struct Open {
    std::string key;
    HttpHeaders headers;
    std::map<int, std::string> parts;
  };
  using Query = std::map<std::string, std::string>;
  void handle(const StubRequest& request, StubAnswer& answer);
  Reply act(const StubRequest& request, bool stale);
  std::optional<Reply> refuse(const StubRequest& request) const;
  Reply in_bucket(const StubRequest& request, const Query& query, bool stale);
  Reply in_object(const StubRequest& request, const std::string& key, const Query& query);
  Reply read(const StubRequest& request, const std::string& key) const;
  Reply write(const StubRequest& request, const std::string& key, std::string bytes, const HttpHeaders& headers,
              const std::string& suffix);
  Reply put_part(const StubRequest& request, const std::string& key, const Query& query);
  Reply complete(const StubRequest& request, const std::string& key, const std::string& id);
  Reply list(const Query& query, bool stale) const;
  Reply list_uploads(const Query& query) const;
  std::optional<Reply> condition(const StubRequest& request, const std::string& key) const;

  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Open> uploads_;
  std::vector<S3Fault> faults_;
  std::vector<std::string> log_;
  std::set<std::string> expired_;
  std::int64_t begun_ = 0;
  std::shared_ptr<AwsKeySource> keys_;
  std::unique_ptr<StubServer> server_;
};

}  // namespace systole
