#pragma once
// Who asks Google's services: the application default credentials, looked for in the order of Google's own clients
// (https://cloud.google.com/docs/authentication/application-default-credentials, 2026-11):
//
//   CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true     nobody: requests are anonymous, for public buckets
//   CLOUDSDK_AUTH_ACCESS_TOKEN                 that token
//   CLOUDSDK_AUTH_ACCESS_TOKEN_FILE            the token in that file, read anew every five minutes
//   GOOGLE_APPLICATION_CREDENTIALS             a file: service_account, authorized_user or
//                                              impersonated_service_account; others are refused by name
//   $CLOUDSDK_CONFIG, or ~/.config/gcloud      application_default_credentials.json there, of the same kinds
//   the metadata server                        GCE_METADATA_HOST, or metadata.google.internal; without one: anonymous
//
// A file that others may read is refused. Nothing is looked for before the first token is asked for.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "ground/net/bearer.h"
#include "ground/net/http_client.h"
#include "ground/net/retry.h"

namespace systole {

// A variable of the environment; nothing if it is not set or empty.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables variables_of_process();

struct GooglePlace {
  Variables variables = variables_of_process();
  HttpTrust trust = {};
  RetryPolicy retries = {};
  std::shared_ptr<Clock> clock = real_clock();
};

std::shared_ptr<BearerSource> google_bearer(GooglePlace place);

// The project that pays for requests: GOOGLE_CLOUD_QUOTA_PROJECT; empty if it is not set.
std::string quota_project(const Variables& variables);

}  // namespace systole
