#pragma once
// The requests that give a token of Google's: to an OAuth server, to IAM's credentials service, to the metadata server.
// Tokens and keys stand in no error.
//   https://developers.google.com/identity/protocols/oauth2/service-account, …/web-server#offline (2026-11)

#include <string>

#include "ground/base/document.h"
#include "ground/cloud/refreshed_bearer.h"
#include "ground/net/http_pool.h"
#include "ground/net/retry.h"

namespace systole {

struct GoogleRequests {
  HttpPool& pool;
  Clock& clock;
  RetryPolicy retries;

  // Of the JSON files that Google's tools write; `name` of the file is for messages. Errors: invalid (a field is
  // absent); unsupported, coded not_authenticated (the server does not take it); io.
  Result<BearerToken> of_service_account(const Node& file, const std::string& name) const;
  Result<BearerToken> of_user(const Node& file, const std::string& name) const;
  // `source` is a token of who may act as the other.
  Result<BearerToken> of_impersonated(const Node& file, const std::string& name, const std::string& source) const;
  // `host` is "metadata.google.internal" or "127.0.0.1:8080". Errors: also not_found: there is no such server.
  Result<BearerToken> of_metadata(const std::string& host) const;

 private:
  Result<BearerToken> post_form(const std::string& url, const std::string& form, const std::string& name) const;
  Result<Node> answer(const HttpReply& reply, const std::string& name) const;
};

// A text of `file`. Errors: invalid.
Result<std::string> field_of(const Node& file, const char* key, const std::string& name);

}  // namespace systole
