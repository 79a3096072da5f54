#pragma once
// For tests: Cloud Storage in memory behind its JSON API, on loopback, with a fault at any request. It has the
// conditions, checksums, generations, pages and resumable sessions of the real one, and refuses what that refuses.
//
//   GcsTwin twin;
//   twin.inject({GcsFault::Kind::reply_lost, 3});
//   auto store = open_store({"gs", "bucket/runs"}, twin.access()).value();

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ground/store/store_access.h"

namespace systole {

struct GcsFault {
  enum class Kind {
    refused,      // the connection is cut before anything is done
    reply_lost,   // it is done, and the connection is cut
    unavailable,  // 503, nothing is done
    failed_late,  // it is done, and the answer is 503
    too_many,     // 429
    truncated,    // half of the answer
    duplicated,   // it arrives twice; the second answer counts
    delayed,      // by 20 ms
    half_taken,   // of a session's part: only the first half is kept
    stale_list,   // a list from before the last change
    flipped,      // a bit of the answer's body flips
    stalled,      // no answer, as long as the client waits
  };
  Kind kind;
  std::int64_t request;  // the n-th, from 1
  bool onwards = false;  // every later one too
};
inline constexpr int kGcsFaults = 11;

struct GcsTwinRequest {
  std::string method, target;
  std::map<std::string, std::string> query, headers;
};

class GcsTwin {
 public:
  explicit GcsTwin(std::string bucket = "bucket");
  ~GcsTwin();
  GcsTwin(const GcsTwin&) = delete;

  std::string url() const;
  // Of this server, with quick retries; `tries_once`: none, as of a process that dies.
  StoreAccess access(std::shared_ptr<BearerSource> bearer = {}, bool tries_once = false) const;

  void inject(GcsFault fault);
  void clear_faults();
  void wants_token(std::string token);                           // 401 without "Bearer TOKEN"
  void wants_payer(std::string project);                         // 400 without userProject
  void answers_html();                                           // to everything, as a login page does
  void forbids();                                                // 403 to everything
  void page_size(std::size_t objects);                           // of a list
  void before(std::int64_t request, std::function<void()> act);  // it may call the twin
  void ignores_checksums();

  // Its content, as it is seen from inside.
  void store(const std::string& name, std::string bytes);
  std::map<std::string, std::string> objects() const;  // with temporary ones
  std::size_t sessions() const;                        // that are not over
  std::vector<GcsTwinRequest> requests() const;
  std::int64_t count() const { return static_cast<std::int64_t>(requests().size()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace systole
