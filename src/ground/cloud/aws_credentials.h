#pragma once
// Who asks AWS's services: credentials are looked for in the order of AWS's own clients
// (https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html, 2026-11):
//
//   AWS_NO_SIGN_REQUEST=true                   nobody: requests are anonymous, for public buckets
//   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY   these keys, with AWS_SESSION_TOKEN
//   AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN  AssumeRoleWithWebIdentity of STS, as pods of EKS have it
//   AWS_PROFILE, or "default"                  of ~/.aws: keys; a web identity; role_arn with source_profile
//                                              (AssumeRole). sso_* and credential_process are refused by name
//   AWS_CONTAINER_CREDENTIALS_*_URI            the container's credentials, as of ECS and EKS Pod Identity
//   the metadata server                        IMDSv2 of EC2, unless AWS_EC2_METADATA_DISABLED=true
//
// Temporary keys are fetched again five minutes before they end. A file of keys that others may read is refused.
// Nothing is looked for before the first keys are asked for.

#include <memory>
#include <string>

#include "ground/cloud/google_credentials.h"
#include "ground/net/aws_signature.h"

namespace systole {

struct AwsPlace {
  Variables variables = variables_of_process();
  HttpTrust trust = {};
  RetryPolicy retries = {};
  std::shared_ptr<Clock> clock = real_clock();
};

std::shared_ptr<AwsKeySource> aws_keys(AwsPlace place);

// What AWS's clients read of a service's place.
struct AwsSettings {
  std::string region = "us-east-1";  // AWS_REGION, AWS_DEFAULT_REGION, or the profile's
  std::string s3_endpoint = {};  // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the profile's; without a '/' at its end
  std::string ca_bundle = {};    // AWS_CA_BUNDLE, or the profile's
};
// Errors: as AwsProfiles::read; invalid: an endpoint that is no URL.
Result<AwsSettings> aws_settings(const Variables& variables);

}  // namespace systole
