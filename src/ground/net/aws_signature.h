#pragma once
// Signature Version 4 of AWS in the header Authorization, for S3 and STS: docs.aws.amazon.com/AmazonS3, "Signature
// Calculations for the Authorization Header". The path is signed as it is in the URL, as S3 does it; other services
// encode it twice, which is the same for paths without such characters.

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/net/http_client.h"

namespace systole {

// Who asks. Secret: never shown.
struct AwsKeys {
  std::string id, secret, session;  // session: of temporary keys, else empty. An empty id: anonymous
  bool anonymous() const { return id.empty(); }
  bool operator==(const AwsKeys&) const = default;
};

// Where keys come from. A store is handed one; ground/cloud makes them.
class AwsKeySource {
 public:
  virtual ~AwsKeySource() = default;
  // Keys that are valid now. Thread-safe, and asked for each request. Errors: invalid, not_found, unsupported (what
  // there is of credentials), io.
  virtual Result<AwsKeys> keys() = 0;
  // A server refused `keys` as expired: the next ones are others, if there are others.
  virtual void refused(const AwsKeys&) {}
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
// SHA-256, 64 lower-case hexadecimal digits.
std::string payload_hash(std::string_view body);

struct AwsScope {
  std::string region, service;
};
// Adds x-amz-date, x-amz-security-token if there is a session, and Authorization. All headers that the request has
// before are signed. REQUIRES: the query of its URL is encoded as url_encoded does it; keys that are not anonymous.
void sign_aws(HttpRequest& request, const AwsKeys& keys, const AwsScope& scope, std::string_view payload_hash,
              std::chrono::system_clock::time_point now);

}  // namespace systole
