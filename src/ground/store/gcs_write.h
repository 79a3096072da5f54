#pragma once
// Writes objects to Cloud Storage: small ones in one request, longer ones as an upload in parts.
//
// An upload of more than one part is a resumable session for a temporary object beside the first path, which
// objects.rewrite copies to the path and under the condition that are named at the end (within a bucket no bytes move),
// after its CRC32C was compared. So a part that is lost is asked for and sent again, nothing is seen before it is whole
// and right, and what a killed process leaves is a session, which ends by itself, or one temporary object.
//
// Each write is marked (metadata "systole-write"). If a conditional write is refused, the mark tells whether it is its
// own first try that was written, whose answer was lost here or on the way.

#include <map>
#include <mutex>

#include "ground/store/gcs_api.h"

namespace systole {

// The query's condition, beginning with '&'; empty for always().
std::string gcs_condition(const Precondition& when);
// Errors: as ObjectStore::put. `sent` is the answer to the write that was marked.
Result<Generation> written(GcsApi& api, std::string_view path, const Precondition& when, const HttpSent& sent,
                           const std::string& mark, std::uint32_t sum, Bytes size);

Result<Generation> put_in_gcs(GcsApi& api, std::string_view path, std::span<const std::byte> bytes,
                              const Precondition& when);

// The uploads of one store that are not over.
struct GcsUploads {
  struct Begun {
    std::string path;
    Bytes size{};
  };
  std::mutex mutex;
  std::map<std::int64_t, Begun> begun;  // by number
  std::int64_t count = 0;
};
std::unique_ptr<Upload> upload_to_gcs(std::shared_ptr<GcsApi> api, std::shared_ptr<GcsUploads> uploads,
                                      std::string path);

}  // namespace systole
