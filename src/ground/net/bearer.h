#pragma once
// Where the token of "Authorization: Bearer" comes from. A store is handed one (ground/store/store_access.h);
// ground/cloud makes them.

#include <string>

#include "ground/base/result.h"

namespace systole {

class BearerSource {
 public:
  virtual ~BearerSource() = default;
  // A token that is valid now; empty: requests show none. Thread-safe, and asked for each request. Errors: invalid,
  // not_found, unsupported (what there is of credentials), io.
  virtual Result<std::string> token() = 0;
  // A server refused `token`: the next one is another, if there is one.
  virtual void refused(const std::string& token) = 0;
};

// Whether a token may be sent to this address: over HTTPS, or to this machine itself. Errors: invalid.
Status check_bearer_url(const std::string& url);

}  // namespace systole
